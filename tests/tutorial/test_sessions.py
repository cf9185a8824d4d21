"""Devices of a program on a machine without a GPU."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import dataset
from cifar10.tutorial import sessions
from tests.helpers import oracle


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
        ('/gpu:3', 'CPU:0'),
        ('/device:GPU:1', 'CPU:0'),
        ('gpu:2', 'CPU:0'),
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


def test_readers_in_the_towers(without_gpu, data_dir):
    """TensorFlow cannot place a reader on a missing GPU, even with soft placement."""
    path = dataset.read(data_dir).test.paths[0]
    labels, images = oracle.read_records([path])
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        records = []
        for tower in range(2):
            with tf.device(f'/gpu:{tower}'):
                queue = tf.train.string_input_producer([path], shuffle=False)
                reader = tf.FixedLengthRecordReader(1 + images[0].size)
                records.append(tf.decode_raw(reader.read(queue)[1], tf.uint8))
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(config=config) as session:
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            for number in range(3):
                for record in session.run(records):
                    assert record[0] == labels[number]
                    np.testing.assert_array_equal(
                        record[1:], images[number].transpose(2, 0, 1).ravel()
                    )
            coordinator.request_stop()
            coordinator.join(threads)
