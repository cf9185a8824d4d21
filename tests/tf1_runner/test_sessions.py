"""Devices of a program on a machine without a GPU."""

import pytest
import tensorflow.compat.v1 as tf

from cifar10.runs import run_record
from tf1_runner import sessions


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


def test_a_program_that_saves_into_the_directory_of_a_run(tmp_path, capsys, monkeypatch):
    """One warning per directory. All is saved."""
    monkeypatch.setattr(tf.train.Saver, 'save', tf.train.Saver.save)
    sessions._warn_of_runs()
    monkeypatch.chdir(tmp_path)
    for name in ('one', 'two', 'none'):
        (tmp_path / name).mkdir()
    for name in ('one', 'two'):
        run_record.write(name, run_record.RunRecord())
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.get_variable('number', initializer=0.0).initializer)
        saver = tf.train.Saver()
        for directory in ('none', 'one', str(tmp_path / 'one'), 'two', '.'):
            path = saver.save(session, directory + '/model.ckpt', global_step=3)
            assert path == directory + '/model.ckpt-3' and tf.train.checkpoint_exists(path)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all('give the program another directory' in line for line in lines)
    for name, line in zip(('one', 'two'), lines):
        assert f': {tmp_path}/{name} holds a run of a trainer, ' in line
