"""The plan of a trainer."""

import dataclasses
import html
import re

import pytest
from tensorboard import plugin_util
import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.cli import training_job
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.runs.run import open_run
from cifar10.system import machine
from tests.helpers import events, small_run


@pytest.fixture
def large(data_dir):
    """A Dataset of 50,000 training images."""
    found = dataset.read(data_dir)
    return found._replace(train=found.train._replace(counts=[5000] * 10, checksum='0'))


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """The number of cores is in the plan."""
    monkeypatch.setattr(machine, 'num_cores', lambda: 2)


def _plan(capsys, job, first_step=0):
    """The printed lines, which are also returned, by the text before the colon."""
    lines = training_job.print_plan(job, first_step)
    assert capsys.readouterr().out.splitlines() == lines
    _, lines[0] = lines[0].rsplit('; devices ', 1)
    lines[0] = 'Devices: ' + lines[0]
    return dict(line.split(': ', 1) for line in lines)


def _cpus(count):
    return [f'/cpu:{i}' for i in range(count)]


def test_the_whole_plan(large, capsys):
    job = training.create_job(large, CLASSIC, _cpus(2), RunSettings(seed=3))
    training_job.print_plan(job, 0)
    first, *others = capsys.readouterr().out.splitlines()
    versions = r'cifar10 \S+, Python \S+, TensorFlow \S+; .* \(cores: 2\)'
    assert re.fullmatch(versions + '; devices /cpu:0, /cpu:1; weights on /cpu:0', first)
    assert others == [
        'Data: 50000 examples of disc, ring, square, triangle, cross, horizontal_stripes, vertical_stripes, diagonal_stripes, '
        'checkerboard, dots in ' + job.dataset.directory,
        'Network: 1068298 parameters (model), products of the hidden layers in float32',
        'Batch: 128 examples per tower, 256 examples per step; epoch: 195.3 steps',
        'Recipe: classic, as in the books',
        'Learning rate: 0.1, multiplied by 0.1 every 350 epochs (68360 steps) (--lr_scaling=none)',
        'End: step 1000000, epoch 5120.00',
        'Seed: 3, for initial values and distortions, not for the order of the examples',
    ]


def test_parts_of_the_plan(data_dir, capsys):
    job = training.create_job(dataset.read(data_dir))
    gpus = _plan(capsys, training.create_job(job.dataset, devices=['/gpu:0', '/gpu:1']))
    assert gpus['Devices'] == '/gpu:0, /gpu:1; weights on /cpu:0'
    first = training.create_job(job.dataset, devices=['/gpu:0'], variable_strategy='first_device')
    assert _plan(capsys, first)['Devices'] == '/gpu:0; weights on /gpu:0'
    settings = RunSettings(seed=1, deterministic=True)
    seeded = _plan(capsys, training.create_job(job.dataset, settings=settings))['Seed']
    assert seeded == '1, deterministic on this machine'


@pytest.mark.parametrize(
    'hparams, num_towers, rate',
    [
        (FAST, 1, 'rises to 0.05 in 2 epochs, then falls to 0 at epoch 25 (step 9766) '),
        (
            dataclasses.replace(CLASSIC, lr_scaling='linear'),
            4,
            '0.4, multiplied by 0.1 every 350 epochs (34180 steps) ',
        ),
    ],
)
def test_the_learning_rate(large, capsys, hparams, num_towers, rate):
    job = training.create_job(large, hparams, _cpus(num_towers))
    printed = _plan(capsys, job)
    assert printed['Learning rate'].startswith(rate)
    assert printed['Learning rate'].endswith(f'(--lr_scaling={hparams.lr_scaling})')


def test_how_a_recipe_differs(data_dir, capsys):
    """A hyperparameter without effect is no difference."""

    def told(hparams):
        return _plan(capsys, training.create_job(dataset.read(data_dir), hparams))['Recipe']

    assert told(FAST) == 'fast, see docs/recipes.md'
    assert told(dataclasses.replace(FAST, optimizer='momentum', epochs=7.0)) == (
        'fast, see docs/recipes.md; changed: optimizer momentum instead of muon, epochs 7.0 instead of 25.0'
    )
    assert told(dataclasses.replace(CLASSIC, optimizer='momentum')) == (
        'classic, as in the books; changed: optimizer momentum instead of gradient_descent, momentum 0.9'
    )


def test_the_plan_in_tensorboard(tmp_path, data_dir, capsys):
    """The printed text, with its Markdown characters; a complete run gets no new plan."""
    odd = tmp_path / 'a *b* __c__ <i> | `d`'
    odd.symlink_to(data_dir)
    printed = []
    for max_steps in (2, 4, 4):
        job = small_run.job(str(odd))._replace(settings=RunSettings(max_steps))
        with open_run(str(tmp_path), training.record(job)) as run, tf.Graph().as_default():
            capsys.readouterr()
            run.plan = training_job.print_plan(job, run.saved_step, 'Cluster: two')
            printed.append((run.saved_step, capsys.readouterr().out))
            if not training.is_complete(job, run.directory, run.saved_step):
                update = tf.assign_add(tf.train.get_or_create_global_step(), 1)
                zero = tf.constant(0.0)
                training.add_step_tensors(update, [zero], [(zero, None)])
                step = training.Step(None, update, tf.constant(b''))
                small_run.run_steps(step, small_run.fake_job(job.run_length), run)
        step, markdown = events.texts(tmp_path)['plan'][-1]
        shown = html.unescape(
            re.sub(r'</?(pre|code)>', '', plugin_util.markdown_to_safe_html(markdown))
        )
        assert max(map(len, shown.splitlines())) <= 120
        shown = shown.replace('\n    ', ' ')
        assert (step, shown) == printed[min(len(printed), 2) - 1]
        assert shown.endswith('\nCluster: two\n') and str(odd) in shown
