"""Divided towers and variables on several devices resume each other, and equal one device."""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import placement
from cifar10.runs import checkpoint
from tests.helpers import messages, programs

FLAGS = [
    '--dataset=synthetic',
    '--deterministic',
    '--seed=4',
    '--batch_size=8',
    '--log_frequency=1',
    '--eval_every=0',
]
ALONE = {1: ['--num_gpus=1'], 2: ['--num_gpus=2']}
PLACEMENTS = {
    1: [
        ['--num_gpus=2', '--devices_per_tower=2'],
        ['--num_gpus=3', '--devices_per_tower=3', '--variable_strategy=spread'],
        ALONE[1],
    ],
    2: [
        ['--num_gpus=2', '--variable_strategy=spread'],
        ['--num_gpus=4', '--devices_per_tower=2', '--variable_strategy=first_device'],
        ALONE[2],
    ],
}


def _train(directory, data_dir, recipe, flags, max_steps):
    """Resume the run until `max_steps`; return the checkpoint's values, and the output."""
    status, stdout, stderr = programs.call(
        'cifar10_multi_gpu_train',
        '--data_dir=' + data_dir,
        f'--train_dir={directory}',
        f'--max_steps={max_steps}',
        *FLAGS + recipe + flags,
    )
    assert (status, stderr) == (0, '')
    return checkpoint.read(f'{directory}/model.ckpt-{max_steps}').values, stdout


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize('num_towers, recipe', [(1, []), (2, ['--recipe=fast', '--epochs=4'])])
def test_each_placement_resumes_any_other(tmp_path, data_dir, num_towers, recipe):
    """The reference is resumed as often, with one device per tower and variables on the CPU."""
    first, _ = _train(tmp_path / 'alone', data_dir, recipe, ALONE[num_towers], 1)
    start, _ = _train(tmp_path / 'placed', data_dir, recipe, ALONE[num_towers], 1)
    assert all((start[name] == value).all() for name, value in first.items())
    for step, flags in enumerate(PLACEMENTS[num_towers], 2):
        alone, _ = _train(tmp_path / 'alone', data_dir, recipe, ALONE[num_towers], step)
        placed, stdout = _train(tmp_path / 'placed', data_dir, recipe, flags, step)
        assert messages.resuming(tmp_path / 'placed', step - 1) in stdout
        assert sorted(placed) == sorted(alone)
        for name, value in alone.items():
            change = np.abs(value - first[name]).max()
            assert change > 0, name
            np.testing.assert_allclose(
                placed[name], value, rtol=0, atol=1e-3 * change, err_msg=name
            )


@pytest.mark.parametrize(
    'script, kind, flags, expected',
    [
        ('cifar10_train', 'gpu', [], '/gpu:0 (--variable_strategy=first_device)'),
        ('cifar10_multi_gpu_train', 'gpu', [], '/gpu:0 (--variable_strategy=first_device)'),
        (
            'cifar10_multi_gpu_train',
            'gpu',
            ['cpu'],
            '/cpu:0 (--variable_strategy=cpu, as in the books)',
        ),
        (
            'cifar10_multi_gpu_train',
            'gpu',
            ['spread'],
            '/gpu:0, /gpu:1 (--variable_strategy=spread)',
        ),
        ('cifar10_multi_gpu_train', 'cpu', [], '/cpu:0 (--variable_strategy=cpu, as in the books)'),
    ],
)
def test_the_default_of_the_weights_depends_on_the_devices(
    tmp_path, data_dir, monkeypatch, script, kind, flags, expected
):
    """With soft placement, a CPU imitates the GPUs; the graph names the devices."""
    monkeypatch.setattr(
        placement, 'tower_devices', lambda count: [f'/{kind}:{i}' for i in range(count)]
    )
    run = [
        f'--data_dir={data_dir}',
        f'--train_dir={tmp_path}/run',
        '--max_steps=1',
        '--eval_every=0',
    ]
    towers = ['--num_gpus=2'] if 'multi' in script else []
    given = [f'--variable_strategy={strategy}' for strategy in flags]
    status, stdout, _ = programs.call(script, '--batch_size=8', *run, *towers, *given)
    assert status == 0 and f'\nWeights: on {expected}\n' in stdout
    with tf.Graph().as_default():
        tf.train.import_meta_graph(f'{tmp_path}/run/model.ckpt-1.meta')
        devices = {variable.op.device for variable in tf.trainable_variables()}
    expected_devices = re.findall('/([cg]pu):(.)', expected)
    assert devices == {f'/device:{name.upper()}:{number}' for name, number in expected_devices}
