"""Whole runs of the scripts, each in a process of its own, as a user starts them."""
import glob
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import dataset, synthetic
from cifar10.runs import checkpoint
from cifar10.hparams import FAST, HParams
from tests import test_evaluation
from tests.helpers.small_run import LINE, scalars

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def start(script, *args):
    """Starts a script with nothing set that a user would not have set."""
    environment = {name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'}
    environment['PYTHONPATH'] = ROOT
    return subprocess.Popen([sys.executable, os.path.join(ROOT, 'scripts', script + '.py')] + list(args), env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


def run(script, *args):
    """Runs a script to its end; returns (exit status, stdout, stderr)."""
    process = start(script, *args)
    stdout, stderr = process.communicate(timeout=120)
    return process.returncode, stdout, stderr


def succeed(script, *args):
    """Runs a script that must succeed without a word on stderr; returns its stdout."""
    status, stdout, stderr = run(script, *args)
    assert (status, stderr) == (0, ''), stderr
    return stdout


def _training_args(data_dir, train_dir, max_steps):
    return ['--dataset=synthetic', '--data_dir=' + data_dir, '--train_dir=' + str(train_dir), '--batch_size=8', '--seed=1',
            '--max_steps=%d' % max_steps, '--log_frequency=2', '--summary_steps=2', '--checkpoint_steps=4']


@pytest.mark.parametrize('script, args, devices, threads, examples_per_step', [
    ('cifar10_train', ['--intra_op_threads=3', '--inter_op_threads=4', '--input_threads=2'], '/cpu:0',
     '3 within an operation, 4 for operations side by side, 2 for the input; slices a batch: 1', 8),
    ('cifar10_multi_gpu_train', ['--num_gpus=2'], '/cpu:0, /cpu:1', '.* within an operation, .* for operations .*', 16)])
def test_train_resume_evaluate(tmp_path, data_dir, script, args, devices, threads, examples_per_step):
    stdout = succeed(script, *(_training_args(data_dir, tmp_path / 'train', 5) + args))
    assert re.search(r'^Devices: %s\nThreads: %s\nBatch: 8 examples a tower, %d a step\nEpoch: 300 examples, %.1f steps$' % (
        devices, threads, examples_per_step, 300 / examples_per_step), stdout, re.M)
    assert 'Filling the shuffle queue with 120 images before training starts: 100%\n' in stdout
    lines = LINE.findall(stdout)
    assert [step for step, *_ in lines] == ['2', '4', '5']
    assert all(4 < float(loss) < 6 for _, loss, _, _ in lines)
    for _, _, examples_per_sec, sec_per_batch in lines:
        assert abs(float(examples_per_sec) * float(sec_per_batch) / examples_per_step - 1) < 0.1
    first = checkpoint.read(str(tmp_path / 'train' / 'model.ckpt-5'))
    assert first.step == 5

    stdout = succeed(script, *(_training_args(data_dir, tmp_path / 'train', 6) + args))
    assert 'Going on from %s, step 5\n' % (tmp_path / 'train' / 'model.ckpt-5') in stdout
    assert [step for step, *_ in LINE.findall(stdout)] == ['6']
    second = checkpoint.read(str(tmp_path / 'train' / 'model.ckpt-6'))
    assert second.step == 6
    change = {name: np.abs(second.values[name] - first.values[name]).max() for name in first.values if name != 'global_step'}
    assert len(change) == 20 and all(0 < value < 0.1 for value in change.values())
    assert [step for step, tag, _ in scalars(str(tmp_path / 'train')) if tag == 'total_loss'] == [2, 4, 6]
    assert [step for step, tag, _ in scalars(str(tmp_path / 'train')) if tag == 'examples_per_sec'] == [2, 4, 6]

    stdout = succeed('cifar10_eval', '--dataset=synthetic', '--data_dir=' + data_dir, '--checkpoint_dir=%s' % (tmp_path / 'train'),
                     '--eval_dir=%s' % (tmp_path / 'eval'), '--run_once')
    match = re.match(r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: precision @ 1 = (0\.\d{3}|1\.000) \((\d+) of 50, step 6\)\n$', stdout)
    assert match and float(match.group(1)) == pytest.approx(int(match.group(2)) / 50)
    assert (6, 'Precision @ 1', pytest.approx(int(match.group(2)) / 50)) in scalars(str(tmp_path / 'eval'))


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_interrupted_goes_on(tmp_path, data_dir, number):
    args = _training_args(data_dir, tmp_path, 1000000) + ['--num_gpus=2']
    process = start('cifar10_multi_gpu_train', *args)
    for line in process.stdout:
        if ': step 6,' in line:
            process.send_signal(number)
            break
    stdout, stderr = process.communicate(timeout=60)
    saved = checkpoint.read(tf.train.latest_checkpoint(str(tmp_path)))
    if number == signal.SIGKILL:
        assert saved.step % 4 == 0
    else:
        assert (process.returncode, stderr) == (0, '')
        assert '%s: stopping' % signal.Signals(number).name in stdout.splitlines()
        assert stdout.endswith('\nSaved %s\n' % saved.path)
    args[args.index('--max_steps=1000000')] = '--max_steps=%d' % (saved.step + 2)
    assert 'Going on from %s, step %d\n' % (saved.path, saved.step) in succeed('cifar10_multi_gpu_train', *args)


def test_ctrl_c_while_the_graph_is_built_gives_one_line(tmp_path, data_dir):
    process = start('cifar10_multi_gpu_train', '--num_gpus=40', *_training_args(data_dir, tmp_path, 10))
    for line in process.stdout:
        if line.startswith('End: '):
            process.send_signal(signal.SIGINT)
            break
    assert process.communicate(timeout=60) == ('', 'cifar10_multi_gpu_train.py: interrupted\n')
    assert process.returncode == 130


def test_each_tower_takes_a_batch_of_its_own_and_the_rate_counts_them_all(tmp_path, data_dir, graph):
    succeed('cifar10_multi_gpu_train', '--num_gpus=2', *_training_args(data_dir, tmp_path, 1))
    saver = tf.train.import_meta_graph(str(tmp_path / 'model.ckpt-1.meta'))
    queue, = [op for op in graph.get_operations() if op.type == 'FIFOQueueV2' and op.name.endswith('/prefetch_queue')]
    assert queue.get_attr('capacity') == 4
    convolutions = [graph.get_operation_by_name('tower_%d/conv1/Conv2D' % i) for i in range(2)]
    batches = [convolution.inputs[0].op for convolution in convolutions]
    assert batches[0] is not batches[1] and {batch.type for batch in batches} == {'QueueDequeueV2'}
    assert {batch.inputs[0].op for batch in batches} == {queue}
    with tf.Session(config=tf.ConfigProto(device_count={'CPU': 2})) as session:
        saver.restore(session, str(tmp_path / 'model.ckpt-1'))
        boundary = -(-350 * 300 // 16)
        rates = []
        for step in (boundary - 1, boundary):
            session.run('global_step/Assign', {graph.get_operation_by_name('global_step/Assign').inputs[1]: step})
            rates.append(session.run('learning_rate/rate:0'))
    np.testing.assert_allclose(rates, [0.1, 0.01], rtol=1e-5)


@pytest.mark.parametrize('script', ['cifar10_train', 'cifar10_multi_gpu_train'])
def test_seed_fresh_and_max_to_keep(tmp_path, data_dir, script):
    args = _training_args(data_dir, tmp_path / 'run', 1)
    weights = []
    for extra in (['--max_steps=5', '--max_to_keep=1'], ['--fresh'], ['--fresh', '--seed=2']):
        succeed(script, *(args + extra))
        weights.append(checkpoint.read(tf.train.latest_checkpoint(str(tmp_path / 'run'))).values['local3/weights'])
    assert np.abs(weights[1] - weights[0]).max() < 0.02 < 0.1 < np.abs(weights[2] - weights[1]).max()
    kept = {tuple(sorted(os.path.basename(path) for path in glob.glob(directory + '/*.index')))
            for directory in glob.glob(str(tmp_path / 'run*'))}
    assert kept == {('model.ckpt-5.index',), ('model.ckpt-1.index',)}  # of which the first was moved aside
    for directory in glob.glob(str(tmp_path / 'run*')):
        assert tf.train.latest_checkpoint(directory).startswith(directory + '/model.ckpt-')


def test_eval_data_and_num_examples(tmp_path, data_dir):
    path, variables = test_evaluation.save_checkpoint(tmp_path, 1)
    for extra, files, count in [(['--eval_data=train_eval'], dataset.train_files, 300), (['--num_examples=7'], dataset.test_files, 7)]:
        stdout = succeed('cifar10_eval', '--dataset=synthetic', '--data_dir=' + data_dir, '--checkpoint_dir=' + str(tmp_path),
                         '--eval_dir=%s' % (tmp_path / 'eval'), '--run_once', *extra)
        correct, _ = test_evaluation.expected_result(data_dir, variables, count, files(data_dir))
        assert '(%d of %d, step 1)' % (correct, count) in stdout


def test_eval_waits_for_checkpoints_until_ctrl_c(tmp_path, data_dir):
    args = ['--dataset=synthetic', '--data_dir=' + data_dir, '--checkpoint_dir=' + str(tmp_path), '--eval_dir=%s' % (tmp_path / 'eval')]
    stdout = succeed('cifar10_eval', '--timeout_secs=0', *args)
    assert stdout == 'Waiting for a checkpoint in %s\nNo new checkpoint in %s for 0 seconds\n' % (tmp_path, tmp_path)
    process = start('cifar10_eval', *args)
    assert process.stdout.readline() == 'Waiting for a checkpoint in %s\n' % tmp_path
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ('', 'cifar10_eval.py: interrupted\n')
    assert process.returncode == 130


def test_dataset_commands(tmp_path):
    place = '--data_dir=' + str(tmp_path)
    summary = '50000 training and 10000 test examples of %s in %s\n' % (', '.join(synthetic.CLASS_NAMES), tmp_path)
    assert succeed('cifar10_dataset', 'synthetic', place) == 'Writing the synthetic data set to %s\n%s' % (
        tmp_path / dataset.DIRECTORY, summary)
    for command in ('verify', 'synthetic', 'download'):  # the files are there: nothing to be done
        assert succeed('cifar10_dataset', command, place) == summary


def test_the_synthetic_set_is_learnt_within_500_steps(tmp_path):
    """The best of three checkpoints, for at the classic rate of 0.1 the loss leaps up now and then."""
    args = ['--dataset=synthetic', '--data_dir=%s' % (tmp_path / 'data'), '--train_dir=%s' % (tmp_path / 'train')]
    succeed('cifar10_train', '--max_steps=500', '--checkpoint_steps=100', *args)
    evaluator = evaluation.Evaluator(str(tmp_path / 'data'), 'test', None, 1, '/cpu:0', tf.ConfigProto())
    results = [evaluator.evaluate(checkpoint.read(str(tmp_path / 'train' / ('model.ckpt-%d' % step)))) for step in (300, 400, 500)]
    assert [(result.step, result.num_examples) for result in results] == [(300, 10000), (400, 10000), (500, 10000)]
    assert max(result.num_correct for result in results) > 9000


def test_log_device_placement(tmp_path, data_dir):
    stdout = succeed('cifar10_multi_gpu_train', '--num_gpus=2', '--log_device_placement', *_training_args(data_dir, tmp_path, 1))
    assert re.search(r'^tower_1/conv2/Conv2D: \(Conv2D\): .*/device:CPU:1$', stdout, re.M)


@pytest.mark.parametrize('script, batch_size', [('cifar10_train', 16), ('cifar10_multi_gpu_train', 8)])
def test_a_recipe_runs_to_its_end_is_recorded_and_evaluated(tmp_path, data_dir, script, batch_size):
    """300 examples and 16 a step: half an epoch is 10 steps."""
    args = [arg for arg in _training_args(data_dir, tmp_path / 'train', 0) if not arg.startswith(('--max_steps', '--batch_size'))]
    args += ['--batch_size=%d' % batch_size] + ['--num_gpus=2'] * (batch_size == 8)
    fast = ['--recipe=fast', '--epochs=0.5', '--warmup_epochs=0.1', '--lr_scaling=linear', '--moving_average_fraction=0.15',
            '--checkpoint_steps=1', '--max_to_keep=0']
    stdout = succeed(script, '--max_steps=4', *args, *fast)
    assert [step for step, *_ in LINE.findall(stdout)] == ['2', '4'] and 'End: step 4, epoch 0.2\n' in stdout
    stdout = succeed(script, *args, *fast)
    assert re.search(r'^Recipe: fast, other than classic in batch_size %d \(128\), optimizer muon \(gradient_descent\), '
                     r'initial_learning_rate 0\.05 \(0\.1\), lr_scaling linear \(none\), momentum 0\.9, matrix_learning_rate 0\.0006, .*'
                     r'epochs 0\.5 \(inf\), .*\nLearning rates: times 0\.125 for 0\.125 times the examples a step of the recipe\n'
                     r'Learning rate: up to 0.00625 over 0\.1 epochs, then down to 0 at the end of epoch 0\.5 \(step 10\)\n'
                     r'End: step 10, epoch 0.5$' % batch_size, stdout, re.M)
    assert [step for step, *_ in LINE.findall(stdout)] == ['6', '8', '10']
    record = json.load(open(str(tmp_path / 'train' / 'run.json')))
    assert {name: record[name] for name in HParams._fields} == dict(
        FAST._asdict(), batch_size=batch_size, lr_scaling='linear', warmup_epochs=0.1, epochs=0.5, moving_average_fraction=0.15)
    saved = [checkpoint.read(str(tmp_path / 'train' / ('model.ckpt-%d' % step))).values for step in range(1, 11)]
    averaged = [name for name in saved[0] if name + '/ExponentialMovingAverage' in saved[0]]
    assert len(averaged) == 10 and len(saved[0]) == 3 * 10 + 1
    for step in range(2, 11):  # before and after the stop at step 4; 1 / 3 is 1 - 1 / (0.15 10)
        decay = min(1 / 3, (1 + step) / (10 + step))
        for name in averaged:
            was, average = [values[name + '/ExponentialMovingAverage'] for values in saved[step - 2:step]]
            np.testing.assert_allclose(average, decay * was + (1 - decay) * saved[step - 1][name], atol=1e-6, err_msg=name)
    written = scalars(str(tmp_path / 'train'))
    assert {tag for _, tag, _ in written if tag.startswith('losses/')} == {'losses/smoothed_cross_entropy'}
    rates = [value for _, tag, value in written if tag == 'learning_rate']
    expected = 0.00625 * np.interp(np.array([1.5, 3.5, 5.5, 7.5, 9.5]) * 16 / 300, [0, 0.1, 0.5], [0, 1, 0])
    np.testing.assert_allclose(rates, expected, rtol=1e-5)

    assert 'Nothing to do: the run ends at step 10\n' in succeed(script, *args, *fast)
    assert run(script, '--max_steps=20', *args)[::2] == (
        1, '%s.py: error: The run in %s is of --recipe=fast, not classic: give that, another --train_dir, or --fresh to move it '
        'aside\n' % (script, tmp_path / 'train'))
    stdout = succeed('cifar10_eval', '--dataset=synthetic', '--data_dir=' + data_dir, '--checkpoint_dir=%s' % (tmp_path / 'train'),
                     '--eval_dir=%s' % (tmp_path / 'eval'), '--run_once', '--views=10')
    assert re.search(r'precision @ 1 = \S+ \(\d+ of 50, 10 views, step 10\)\n$', stdout)
    written = {tag: value for _, tag, value in scalars(str(tmp_path / 'eval'))}
    assert written['total_loss, 10 views'] == written['losses/cross_entropy, 10 views']
