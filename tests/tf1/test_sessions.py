"""Devices of a program on a machine without a GPU."""

import pytest
import tensorflow.compat.v1 as tf

from cifar10.tf1 import sessions


@pytest.fixture
def without_gpu(monkeypatch):
    def record(self, server_def):
        self._server_def = server_def

    monkeypatch.setattr(tf.Graph, 'device', tf.Graph.device)
    # A process can start only one server, and no server can be stopped.
    monkeypatch.setattr(tf.train.Server, '__init__', record)
    sessions._use_cpu()


@pytest.mark.parametrize(
    'device, expected',
    [
        ('/gpu:0', 'CPU:0'),
        ('/device:GPU:1', 'CPU:0'),
        ('/gpu', 'CPU:0'),
        ('/task:0/gpu:1', '/TASK:0/DEVICE:CPU:0'),
        ('/job:localhost/replica:0/task:0/device:GPU:0', '/TASK:0/DEVICE:CPU:0'),
        ('/job:worker/task:1/gpu:0', '/JOB:WORKER/TASK:1/DEVICE:CPU:0'),
        ('/cpu:1', 'CPU:1'),
        (lambda operation: '/gpu:1' if operation.type == 'Const' else '/cpu:2', 'CPU:0'),
        (lambda operation: '/cpu:2', 'CPU:2'),
        (None, ''),
        ('/job:worker/task:0/gpu:0', 'GPU:0'),
    ],
)
def test_the_device_of_an_operation(without_gpu, capsys, device, expected):
    """A device of another task of a cluster may exist."""
    tf.train.Server(tf.train.ServerDef(job_name='worker', task_index=1))
    with tf.Graph().as_default():
        for _ in range(2):
            with tf.device(device):
                operation = tf.constant(1).op
    assert operation.device.upper().endswith(expected)
    is_told = 'CPU:0' in expected
    assert capsys.readouterr().err.count('No GPU found: ') == is_told


def test_a_nested_device_and_a_device_spec(without_gpu):
    with tf.Graph().as_default(), tf.device('/cpu:1'):
        with tf.device(tf.DeviceSpec(device_type='GPU', device_index=2)):
            inner = tf.constant(1).op
        outer = tf.constant(1).op
    assert (inner.device, outer.device) == ('/device:CPU:0', '/device:CPU:1')
