"""TensorBoard summaries, read by TensorBoard's own code."""

import dataclasses
import io
import math
import re

from google.protobuf import json_format
from PIL import Image
import pytest
from tensorboard import plugin_util
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, metadata
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.config import HPARAMS
from cifar10.errors import UserError
from cifar10.report import event_files
from cifar10.runs import run_record
from tests.conftest import RUNS
from tests.helpers import events, scored, small_run

FIRST = {'recipe', 'optimizer', 'initial_learning_rate', 'batch_size', 'network'}


def _hparams(parent):
    """Return the messages of the plugin HParams: {run: {tag: message}}."""
    multiplexer = (
        plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(parent)).Reload()
    )
    parse = {
        metadata.EXPERIMENT_TAG: metadata.parse_experiment_plugin_data,
        metadata.SESSION_START_INFO_TAG: metadata.parse_session_start_info_plugin_data,
        metadata.SESSION_END_INFO_TAG: metadata.parse_session_end_info_plugin_data,
    }
    return {
        run: {tag: parse[tag](content) for tag, content in found.items()}
        for run, found in multiplexer.PluginRunToTagToContent('hparams').items()
    }


def test_runs_in_one_directory_compare(runs):
    """One row per run, with the hyperparameters that have an effect; equal columns in all runs."""
    found = _hparams(runs)
    assert sorted(found) == ['classic', 'fast']
    columns, others = [run[metadata.EXPERIMENT_TAG] for run in found.values()]
    assert columns == others
    infos = {column.name: column for column in columns.hparam_infos}
    assert set(infos) == {*HPARAMS, 'network', 'batches_per_step', 'num_examples'}
    for name, hparams in RUNS.items():
        expected = {
            field: value
            for field, value in dataclasses.asdict(hparams).items()
            if hparams.has_effect(field) and value != math.inf
        }
        shown = json_format.MessageToDict(found[name][metadata.SESSION_START_INFO_TAG])['hparams']
        assert shown == dict(expected, network='model', batches_per_step=2, num_examples=300)
        assert ('epochs' in expected) == (name == 'fast')
        ((_, table),) = events.texts(runs / name)['hyperparameters']
        assert all(f'\n| {field} | {value} |' in table for field, value in expected.items())
        assert ('\n| epochs | inf |' in table) == ('momentum' not in table) == (name == 'classic')
        assert found[name][metadata.SESSION_END_INFO_TAG].status == api_pb2.STATUS_SUCCESS
        for field, value in expected.items():
            if isinstance(value, str):
                assert infos[field].type == api_pb2.DATA_TYPE_STRING
                assert value in json_format.MessageToDict(infos[field])['domainDiscrete']
            else:
                assert infos[field].type == api_pb2.DATA_TYPE_FLOAT64
    # TensorBoard 1.15 shows the first five columns; 2 reads `differs`.
    assert {column.name for column in columns.hparam_infos[:5]} == FIRST
    assert FIRST == {
        name for name, info in infos.items() if getattr(info, 'differs', name in FIRST)
    }
    assert [metric.name.tag for metric in columns.metric_infos] == ['Precision @ 1', 'epoch']


def test_a_resumed_run_is_one_row(tmp_path, data_dir):
    """The run writes its end when it is complete, not when it diverges."""
    with pytest.raises(UserError, match='^Training diverged because '):
        small_run.train(tmp_path / 'run', data_dir, 5, save_checkpoint_steps=2, bad_step=4)
    (row,) = _hparams(tmp_path).values()
    assert sorted(row) == [metadata.EXPERIMENT_TAG, metadata.SESSION_START_INFO_TAG]
    for max_steps in (3, 6):
        small_run.train(tmp_path / 'run', data_dir, max_steps)
    (row,) = _hparams(tmp_path).values()
    start = row[metadata.SESSION_START_INFO_TAG].start_time_secs
    assert row[metadata.SESSION_END_INFO_TAG].end_time_secs >= start > 0
    assert [step for step, _ in events.texts(tmp_path)['hyperparameters']] == [0, 2, 3]


def test_every_chart_has_curves(runs):
    """TensorBoard matches regular expressions at the start of tags."""
    (layout,) = (
        layout_pb2.Layout.FromString(value.tensor.string_val[0])
        for event in events.read(runs / 'fast')
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name == 'custom_scalars'
    )
    tags = {tag for _, tag, _ in events.scalars(runs / 'fast')}
    for chart in layout.category[0].chart:
        assert any(re.match(wanted, tag) for wanted in chart.multiline.tag for tag in tags), chart


def test_the_plan():
    """Markdown leaves it unchanged; long lines are wrapped between words."""
    record = run_record.RunRecord(batches_per_step=1, num_examples=1)
    plan = ['Data: *a*', 'Recipe: ' + 60 * 'x-y ']
    first, *others = event_files.run_start_summaries(plan, record)
    assert len(others) == len(event_files.run_start_summaries(None, record)) == 4
    (value,) = first.value
    assert value.tag == 'plan' and value.metadata.plugin_data.plugin_name == 'text'
    first, second, third, _ = tf.make_ndarray(value.tensor).item().decode().split('\n')
    assert first == '    Data: *a*' and second == '    Recipe: ' + 27 * 'x-y ' + 'x-y'
    assert third.startswith('        x-y ')


def test_an_evaluation(runs):
    """Tags, table of classes (names with special characters), images."""
    metrics = scored.of_matrix([[8, 2], [1, 3]])
    result = evaluation.Result(7, metrics, [], ['*c_d*', '<e>|&[f]'], {'total_loss': 2.5})
    shown = event_files.evaluation_summary(result, 2)
    values = {value.tag: value for value in shown.value}
    numbers = {tag: value.simple_value for tag, value in values.items() if value.simple_value}
    assert numbers == {
        'Precision @ 1': pytest.approx(11 / 14),
        'Precision @ 2': 1,
        'calibration_error': pytest.approx(0.9 - 11 / 14),
        'total_loss': 2.5,
    }
    for tag in ('confusion_matrix', 'mistakes', 'reliability'):
        image = values[tag].image
        with Image.open(io.BytesIO(image.encoded_image_string)) as decoded:
            assert decoded.size == (image.width, image.height)
    text = values['classes/text_summary']
    assert text.metadata.plugin_data.plugin_name == 'text'
    markdown = tf.make_ndarray(text.tensor).item().decode()
    html = plugin_util.markdown_to_safe_html(markdown)
    assert re.search(r'\*c_d\* +0\.889 .*\n&lt;e&gt;\|&amp;\[f\] +0\.600 ', html)
    tags = {value.tag for value in event_files.evaluation_summary(result, None).value}
    assert tags == set(values) - {'Precision @ 2'}
