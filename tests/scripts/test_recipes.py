"""Runs of a recipe: end, record, moving averages, evaluation."""

import json
import re

import numpy as np
import pytest

from cifar10.config import FAST, HParams
from tests.helpers import events, messages, programs
from tests.scripts.test_trainers import args_of

RECIPE = [
    '--recipe=fast',
    '--epochs=0.5',
    '--warmup_epochs=0.1',
    '--lr_scaling=linear',
    '--moving_average_fraction=0.15',
]


pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def finished(tmp_path_factory, data_dir):
    """A complete run of a recipe, resumed once: half an epoch is 10 steps of 16 examples."""
    directory = tmp_path_factory.mktemp('run')
    args = args_of(data_dir, directory / 'train', 1000) + ['--num_gpus=2']
    outputs = []
    for extra in (['--max_steps=4'], [], []):
        status, stdout, stderr = programs.call('cifar10_multi_gpu_train', *args, *RECIPE, *extra)
        assert (status, stderr) == (0, '')
        outputs.append(stdout)
    return args, directory, outputs


def test_a_recipe_ends_and_is_recorded(finished):
    _, directory, (first, resumed, ended) = finished
    assert messages.log_steps(first) == ['2', '4']
    assert 'End: step 4, epoch 0.2\n' in first
    assert re.search(
        r'^Recipe: fast; differences from classic: batch_size 8 \(classic: 128\), optimizer muon \(classic: '
        r'gradient_descent\), initial_learning_rate 0\.05 \(classic: 0\.1\), lr_scaling linear \(classic: none\), '
        r'momentum 0\.9 \(not in classic\), matrix_learning_rate 0\.0006 \(not in classic\), .*'
        r'epochs 0\.5 \(classic: inf\), .*\nLearning rate: rises to 0\.00625 in 0\.1 epochs, then falls to 0 at '
        r'epoch 0\.5 \(step 10\) \(--lr_scaling=linear\)\n'
        r'End: step 10, epoch 0.5$',
        resumed,
        re.M,
    )
    assert messages.log_steps(resumed) == ['6', '8', '10']
    assert messages.nothing_to_do(10) in ended
    with open(str(directory / 'train' / 'run.json')) as opened:
        record = json.load(opened)
    assert {name: record[name] for name in HParams._fields} == dict(
        FAST._asdict(),
        batch_size=8,
        lr_scaling='linear',
        warmup_epochs=0.1,
        epochs=0.5,
        moving_average_fraction=0.15,
    )


def test_summaries_of_a_recipe(finished):
    _, directory, _ = finished
    written = events.scalars(directory / 'train')
    assert {tag for _, tag, _ in written if tag.startswith('losses/')} == {
        'losses/smoothed_cross_entropy'
    }
    rates = [value for _, tag, value in written if tag == 'learning_rate']
    expected = 0.00625 * np.interp(
        np.array([0.5, 1.5, 3.5, 4.5, 5.5, 7.5, 9.5]) * 16 / 300, [0, 0.1, 0.5], [0, 1, 0]
    )
    np.testing.assert_allclose(rates, expected, rtol=1e-5)


def test_another_recipe_is_refused(finished):
    args, directory, _ = finished
    status, _, stderr = programs.call('cifar10_multi_gpu_train', *args)
    complaint = 'The run in %s was trained with recipe fast, not classic: give the same, '
    assert status == 1 and complaint % (directory / 'train') in stderr
