"""A run of a recipe: end, record, summaries."""

import dataclasses

import numpy as np
import pytest

from cifar10.config import FAST
from cifar10.runs import run_record
from tests.helpers import events, messages, programs
from tests.scripts.test_trainers import args_of

RECIPE = [
    '--recipe=fast',
    '--epochs=0.5',
    '--warmup_epochs=0.1',
    '--lr_scaling=linear',
    '--moving_average_fraction=0.15',
]


@pytest.mark.slow
def test_a_recipe_is_resumed_and_ends(tmp_path, data_dir):
    """Half an epoch is 10 steps of 16 examples."""
    args, outputs = args_of(data_dir, tmp_path, 1000) + ['--num_gpus=2'], []
    for extra in (['--max_steps=4'], []):
        status, stdout, stderr = programs.call('cifar10_multi_gpu_train', *args, *RECIPE, *extra)
        assert (status, stderr) == (0, '')
        outputs.append(stdout)
    assert [messages.log_steps(output) for output in outputs] == [['0', '2', '4'], ['6', '8', '10']]
    assert 'End: step 4, epoch 0.2\n' in outputs[0] and 'End: step 10, epoch 0.5\n' in outputs[1]
    assert run_record.read_hparams(str(tmp_path)) == dataclasses.replace(
        FAST,
        batch_size=8,
        lr_scaling='linear',
        warmup_epochs=0.1,
        epochs=0.5,
        moving_average_fraction=0.15,
    )
    written = events.scalars(tmp_path)
    assert {tag for _, tag, _ in written if tag.startswith('losses/')} == {
        'losses/smoothed_cross_entropy'
    }
    rates = [value for _, tag, value in written if tag == 'learning_rate']
    expected = 0.00625 * np.interp(
        np.array([0.5, 2.5, 3.5, 4.5, 6.5, 8.5, 9.5]) * 16 / 300, [0, 0.1, 0.5], [0, 1, 0]
    )
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
