"""Devices of the weights, in the plan and in the graph of the trainers."""

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu
from tests.helpers import programs


@pytest.mark.parametrize(
    'script, kind, flags, expected',
    [
        ('cifar10_train', 'gpu', [], '/gpu:0'),
        ('cifar10_multi_gpu_train', 'gpu', [], '/gpu:0'),
        ('cifar10_multi_gpu_train', 'gpu', ['cpu'], '/cpu:0'),
        ('cifar10_multi_gpu_train', 'cpu', [], '/cpu:0'),
    ],
)
def test_the_default_of_the_weights_depends_on_the_devices(
    tmp_path, data_dir, monkeypatch, script, kind, flags, expected
):
    """With soft placement, a CPU imitates the GPUs; the graph names the devices."""
    monkeypatch.setattr(
        multi_gpu, 'tower_devices', lambda count: [f'/{kind}:{i}' for i in range(count)]
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
    assert status == 0 and f'; weights on {expected}\n' in stdout
    with tf.Graph().as_default():
        tf.train.import_meta_graph(f'{tmp_path}/run/model.ckpt-1.meta')
        devices = {variable.op.device for variable in tf.trainable_variables()}
    assert devices == {f'/device:{expected[1:6].upper()}'}
