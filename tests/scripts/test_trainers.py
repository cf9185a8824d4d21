"""Training scripts: train() as a library, and whole runs."""

import dataclasses
import glob
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_multi_gpu_train, cifar10_train
from cifar10.system import machine
from tests.helpers import events, faults, messages, programs


def args_of(data_dir, train_dir, max_steps):
    """Return the flags of a short run without evaluation."""
    return [
        '--dataset=synthetic',
        '--data_dir=' + data_dir,
        '--train_dir=' + str(train_dir),
        '--batch_size=8',
        '--seed=1',
        f'--max_steps={max_steps}',
        '--log_frequency=2',
        '--save_summaries_steps=2',
        '--save_checkpoint_steps=4',
        '--eval_every=0',
    ]


def _train(script, job, train_dir):
    with open_run(str(train_dir), training.record(job)) as run:
        script.train(job, run)
    return tf.train.latest_checkpoint(str(train_dir))


@pytest.mark.parametrize(
    'script, devices',
    [(cifar10_train, ['/cpu:0']), (cifar10_multi_gpu_train, ['/cpu:0', '/cpu:1'])],
)
def test_train_as_a_library(tmp_path, data_dir, capsys, script, devices):
    """The settings of the job reach graph, log and directory."""
    job = training.create_job(
        dataset.read(data_dir),
        dataclasses.replace(CLASSIC, batch_size=8, contrast=0.25, num_epochs_per_decay=0.125),
        devices,
        RunSettings(
            max_steps=4,
            log_frequency=2,
            save_summaries_steps=2,
            save_checkpoint_steps=3,
            profile_step=2,
            eval_every=3,
        ),
    )
    path = _train(script, job, tmp_path)
    assert path == str(tmp_path / 'model.ckpt-4')
    assert messages.log_steps(capsys.readouterr().out) == ['0', '2', '4']
    assert sorted(glob.glob(str(tmp_path / 'model.*.index'))) == [
        str(tmp_path / f'model.ckpt-{step}.index') for step in (0, 3, 4)
    ]
    assert (tmp_path / 'trace-2.json').exists()
    shown = events.shown_steps(tmp_path)
    assert (shown['total_loss'], shown['Precision @ 1']) == ([1, 3, 4], [3, 4])
    assert '_hparams_/session_end_info' in [
        value.tag for event in events.read(tmp_path) for value in event.summary.value
    ]
    scopes = {name.split('/')[0] for name in events.shown_graph(tmp_path)}
    step = {'distorted_inputs', 'prefetch_queue', 'conv1', 'local3', 'moving_averages', 'update'}
    assert step | ({'total_loss'} if len(devices) == 1 else {'average_gradients'}) <= scopes
    assert not scopes & {'save', 'init', 'report_uninitialized_variables', 'summaries', 'is_finite'}
    written = {tag: value for _, tag, value in events.scalars(tmp_path)}
    # An eighth of 300 examples is 38: 4 * 8 are before the first decay, 3 * 16 after it.
    np.testing.assert_allclose(
        written['learning_rate'], 0.1 if len(devices) == 1 else 0.01, rtol=1e-5
    )
    np.testing.assert_allclose(written['epoch'], 4 * 8 * len(devices) / 300, rtol=1e-5)
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(path + '.meta', clear_devices=True)
        with tf.Session() as session:
            lower = [
                session.run(op.outputs[0])
                for op in graph.get_operations()
                if op.name.startswith('distorted_inputs/')
                and op.name.endswith('/min')
                and op.outputs[0].dtype == tf.float32
            ]
    assert 0.75 in lower  # a contrast factor


def test_one_gpu_holds_variables_and_optimizer(tmp_path, data_dir):
    """Muon computes where the weights are; only input, step and learning rate stay on the CPU."""
    job = training.create_job(
        dataset.read(data_dir),
        dataclasses.replace(FAST, batch_size=16),
        ['/gpu:0'],
        RunSettings(max_steps=1, eval_every=0),
        variable_strategy='first_device',
    )
    path, holders = _train(cifar10_train, job, tmp_path), set()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(path + '.meta')
        for variable in tf.global_variables():
            expected = 'CPU' if variable.op.name == 'global_step' else 'GPU'
            assert variable.op.device == f'/device:{expected}:0', variable.op.name
            holders.add(variable.op.name.split('/')[-1])
        assert {'weights', 'biases', 'Muon', 'ExponentialMovingAverage'} <= holders
        products = [op for op in graph.get_operations() if op.type in ('MatMul', 'BatchMatMulV2')]
        updates = [op.device for op in products if op.name.startswith('update/')]
        assert len(updates) == 19 and set(updates) == {'/device:GPU:0'}
        for scope, kind, number in [
            ('moving_averages/', 'ResourceApplyGradientDescent', 10),
            ('step/gradient_norm/', 'Sqrt', 1),
        ]:
            devices = [
                op.device
                for op in graph.get_operations()
                if op.name.startswith(scope) and op.type == kind
            ]
            assert devices == ['/device:GPU:0'] * number


def test_each_tower_has_its_own_batches(tmp_path, data_dir):
    """They come from one prefetch queue. GPU names run on the CPU by soft placement."""
    job = training.create_job(
        dataset.read(data_dir),
        dataclasses.replace(CLASSIC, batch_size=16),
        ['/gpu:0', '/gpu:1'],
        RunSettings(max_steps=1, eval_every=0),
    )
    path = _train(cifar10_multi_gpu_train, job, tmp_path)
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(path + '.meta')
    (queue,) = [
        op
        for op in graph.get_operations()
        if op.type == 'FIFOQueueV2' and op.name.endswith('/prefetch_queue')
    ]
    assert queue.get_attr('capacity') == 4
    convolutions = [graph.get_operation_by_name(f'tower_{i}/conv1/Conv2D') for i in range(2)]
    assert [op.device for op in convolutions] == ['/device:GPU:0', '/device:GPU:1']
    batches = [op.inputs[0].op.inputs[0].op for op in convolutions]  # before the identity 'images'
    assert batches[0] is not batches[1] and {batch.type for batch in batches} == {'QueueDequeueV2'}
    assert {batch.inputs[0].op for batch in batches} == {queue}


def test_the_seed_of_a_resumed_run(tmp_path, data_dir):
    """A resumed run does not repeat the random numbers of the first steps."""

    def seeds(directory, max_steps):
        job = training.create_job(
            dataset.read(data_dir),
            dataclasses.replace(CLASSIC, batch_size=8),
            settings=RunSettings(max_steps, seed=1, eval_every=0),
        )
        path = _train(cifar10_train, job, tmp_path / directory)
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(path + '.meta')
        return {
            (op.get_attr('seed'), op.get_attr('seed2'))
            for op in graph.get_operations()
            if op.type == 'RandomUniform'
        }

    first, resumed = seeds('run', 1), seeds('run', 2)
    assert first and first == seeds('again', 1) and not first & resumed


@pytest.mark.slow
def test_train_resume_evaluate(tmp_path, data_dir):
    train_dir = tmp_path / 'train'
    args = [*args_of(data_dir, train_dir, 5), '--num_gpus=2']
    stdout = programs.succeed('cifar10_multi_gpu_train', *args)
    assert '; devices /cpu:0, /cpu:1; weights on /cpu:0\n' in stdout
    assert 'Filling the shuffle queue with 120 images before training starts: 100%\n' in stdout
    assert 'precision' not in stdout
    lines = messages.log_lines(stdout)
    assert [step for step, *_ in lines] == ['0', '2', '4', '5']
    assert all(4 < float(loss) < 6 for _, loss, _, _ in lines)
    first = checkpoint.read(str(train_dir / 'model.ckpt-5')).values

    stdout = programs.succeed('cifar10_multi_gpu_train', *args, '--max_steps=6', '--eval_every=2')
    (precision,) = re.findall(r': precision @ 1 = .*\n', stdout)
    assert messages.resuming(train_dir, 5) in stdout
    assert messages.log_steps(stdout) == ['6']
    second = checkpoint.read(str(train_dir / 'model.ckpt-6')).values
    change = {name: np.abs(second[name] - first[name]).max() for name in first}
    assert change.pop('global_step') == 1
    assert len(change) == 20 and all(0 < value < 0.1 for value in change.values())
    for tag in ('total_loss', 'examples_per_sec'):
        steps = [step for step, other, _ in events.scalars(train_dir) if other == tag]
        assert steps == [1, 3, 5, 6]

    stdout = programs.succeed(
        'cifar10_eval',
        '--dataset=synthetic',
        '--data_dir=' + data_dir,
        f'--checkpoint_dir={train_dir}',
        f'--eval_dir={tmp_path / "eval"}',
    )
    assert precision in stdout
    assert 'train has ended: its last checkpoint is evaluated\nclass ' in stdout
    assert programs.succeed('cifar10_multi_gpu_train', *args, '--max_steps=6').endswith(
        ': using /cpu:0, /cpu:1 ('
        + machine.GPU_REMEDY
        + ')\n'
        + messages.nothing_to_do(train_dir, 6, 6)
    )
    (correct,) = re.findall(r' \((\d+) of 50, step 6\), 95 % interval ', precision)
    written = events.scalars(tmp_path / 'eval')
    assert (6, 'Precision @ 1', pytest.approx(int(correct) / 50)) in written


@pytest.mark.slow
def test_a_killed_run_is_resumed(tmp_path, data_dir):
    process = programs.start('cifar10_train', *args_of(data_dir, tmp_path, 1000000))
    faults.read_until(process, ': step 6,')
    process.kill()
    faults.end(process)
    saved = checkpoint.read_latest(str(tmp_path)).step
    assert saved and saved % 4 == 0
    status, stdout, _ = programs.call('cifar10_train', *args_of(data_dir, tmp_path, saved + 2))
    assert status == 0 and messages.resuming(tmp_path, saved) in stdout


@pytest.mark.long
def test_the_synthetic_set_is_learnt(tmp_path):
    """The recipe `fast` learns it in two epochs."""
    stdout = programs.succeed(
        'cifar10_train',
        '--dataset=synthetic',
        f'--data_dir={tmp_path / "data"}',
        f'--train_dir={tmp_path / "train"}',
        '--recipe=fast',
        '--epochs=2',
        '--deterministic',
        '--seed=1',
    )
    ((_, correct, step),) = re.findall(messages.precision(10000), stdout)
    assert int(correct) > 9000 and step == '782'
