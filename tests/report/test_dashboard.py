"""The dashboard shows what a run writes."""

import re

from tensorboard.plugins.custom_scalar import layout_pb2

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.hparams import CLASSIC, FAST, Intervals
from cifar10.report import dashboard
from cifar10.runs import checkpoint, run_directory
from cifar10.training import Job
from scripts import cifar10_train
from tests.helpers import events


def _layouts(directory):
    """The layouts of the dashboard in the event files of a directory."""
    return [
        layout_pb2.Layout.FromString(value.tensor.string_val[0])
        for event in events.read(directory)
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name == 'custom_scalars'
    ]


def _train(train_dir, data_dir, hparams):
    job = Job(
        dataset.read(data_dir),
        300,
        hparams._replace(batch_size=8),
        max_steps=2,
        intervals=Intervals(summary_steps=1),
    )
    with run_directory.held(str(train_dir), False, job) as run:
        cifar10_train.train(job, run)


def test_every_chart_has_curves(tmp_path, data_dir):
    """By regular expressions that TensorBoard applies to the beginnings of tags; 'sec_per_batch'
    and the like stay out."""
    for name, hparams in [('classic', CLASSIC), ('fast', FAST)]:
        _train(tmp_path / name, data_dir, hparams)
    evaluation.evaluate(
        evaluation.Evaluator(dataset.read(data_dir).test),
        [checkpoint.read_latest(str(tmp_path / 'fast'))],
        str(tmp_path / 'eval'),
    )
    written = {
        name: {tag for _, tag, _ in events.scalars(tmp_path / name)}
        for name in ('classic', 'fast', 'eval')
    }
    layouts = [layout for name in written for layout in _layouts(tmp_path / name)]
    assert len(layouts) == 3 and layouts[0] == layouts[1] == layouts[2]
    (category,) = layouts[0].category
    shown = {
        chart.title: {
            name: sorted(
                tag for tag in found if any(re.match(wanted, tag) for wanted in chart.multiline.tag)
            )
            for name, found in written.items()
        }
        for chart in category.chart
    }
    precision, total, entropy, rate, speed, fill = [
        ['Precision @ 1'],
        ['total_loss'],
        ['losses/cross_entropy'],
        ['learning_rate'],
        ['examples_per_sec'],
        ['prefetch_queue/fill', 'shuffle_queue/fill'],
    ]
    assert shown == {
        'Precision of the moving averages': {
            'classic': precision,
            'fast': precision,
            'eval': precision,
        },
        'Total loss': {'classic': total, 'fast': total, 'eval': total},
        'Cross entropy': {
            'classic': entropy,
            'fast': ['losses/smoothed_cross_entropy'],
            'eval': entropy,
        },
        'Learning rate': {'classic': rate, 'fast': rate, 'eval': []},
        'Speed, examples per second': {'classic': speed, 'fast': speed, 'eval': []},
        'Fill of the queues': {'classic': fill, 'fast': fill, 'eval': []},
    }


def test_tensorboard_finds_it():
    """By the names of its plugin for custom scalars."""
    (value,) = dashboard.layout().value
    assert (
        value.tag == 'custom_scalars__config__'
        and value.metadata.plugin_data.plugin_name == 'custom_scalars'
    )
