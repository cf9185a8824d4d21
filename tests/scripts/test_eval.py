"""The evaluation script."""
import signal

import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import dataset
from tests.helpers import checkpoints, programs


def _args(data_dir, directory):
    return ['--dataset=synthetic', '--data_dir=' + data_dir, '--checkpoint_dir=%s' % directory, '--eval_dir=%s' % (directory / 'eval')]


def test_eval_data_and_num_examples(tmp_path, data_dir):
    _, variables = checkpoints.save(tmp_path, 1)
    found = dataset.read(data_dir)
    for extra, records, count in [(['--eval_data=train_eval'], found.train, 300), (['--num_examples=7'], found.test, 7)]:
        status, stdout, _ = programs.call('cifar10_eval', '--run_once', *(_args(data_dir, tmp_path) + extra))
        correct, _ = checkpoints.expected_result(data_dir, variables, count, records.paths)
        assert status == 0 and '(%d of %d, step 1)' % (correct, count) in stdout


def test_use_gpu(tmp_path, data_dir):
    checkpoints.save(tmp_path, 1)
    status, stdout, _ = programs.call('cifar10_eval', '--run_once', '--use_gpu', '--num_examples=1', *_args(data_dir, tmp_path))
    assert status == 0
    assert tf.config.experimental.list_physical_devices('GPU') or stdout.startswith('No GPU found: using /cpu:0 (')


def test_timeout(tmp_path, data_dir):
    status, stdout, stderr = programs.call('cifar10_eval', '--timeout_secs=0', *_args(data_dir, tmp_path))
    assert (status, stderr) == (0, '')
    assert stdout == 'Waiting for a checkpoint in %s\nNo new checkpoint in %s for 0 seconds\n' % (tmp_path, tmp_path)


@pytest.mark.slow
def test_ctrl_c_while_it_waits(tmp_path, data_dir):
    process = programs.start('cifar10_eval', *_args(data_dir, tmp_path))
    assert process.stdout.readline() == 'Waiting for a checkpoint in %s\n' % tmp_path
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == 'cifar10_eval.py: interrupted (SIGINT)\n'
    assert process.returncode == 130
