"""Training, evaluation and export on GPUs, against the CPU or NumPy."""

import functools
import multiprocessing
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation, multi_gpu, optimizer
from cifar10.config import CLASSIC, RunLength
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.system import machine
from tests.helpers import faults, forks, messages, oracle, programs

RNG = np.random.RandomState(0)
BATCHES = [
    (RNG.randn(8, 24, 24, 3).astype(np.float32), np.arange(8, dtype=np.int32)) for _ in range(4)
]
TOLERANCE = 2e-2  # Rounding can change the maximum of two nearly equal activations.
LOGICAL_GPUS = [f'/gpu:{i}' for i in range(4)]

pytestmark = pytest.mark.gpu


@pytest.fixture(scope='module', autouse=True)
def gpus():
    """The devices of one tower per GPU."""
    visible = tf.config.experimental.list_physical_devices('GPU')
    if not visible:
        pytest.skip('TensorFlow sees no GPU, or was started without -m gpu')
    _set_up()
    return multi_gpu.tower_devices(len(visible))


def _set_up():
    """Set up TensorFlow for products in float32: recent GPUs round factors to 10 bits of
    mantissa."""
    machine.set_up_tensorflow()
    if hasattr(tf.config.experimental, 'enable_tensor_float_32_execution'):  # not in 1.15
        tf.config.experimental.enable_tensor_float_32_execution(False)


@pytest.fixture(scope='module')
def trained(tmp_path_factory, data_dir):
    """The directory and the output of a run on one GPU."""
    directory = tmp_path_factory.mktemp('trained')
    return directory, _train('cifar10_train', data_dir, directory, '--batch_size=32')


def _train(script, data_dir, directory, *flags):
    """Train 100 steps, and evaluate; return stdout."""
    flags = ['--recipe=fast', '--max_steps=100', '--seed=1', '--profile_step=3', *flags]
    status, stdout, stderr = programs.call(
        script, *faults.evaluated_job(data_dir, directory, *flags)
    )
    assert status == 0, stderr
    return stdout


def _update(devices, variable_device='/cpu:0'):
    """Update the towers once; return their losses, the changes of all variables, and name, type
    and device of the executed operations.

    Four devices are logical ones: a process has either these or the physical ones.
    """
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step, run_length = (
            tf.train.get_or_create_global_step(),
            RunLength(examples_per_step=8 * len(devices), examples_per_epoch=8 * len(devices)),
        )
        opt = optimizer.create(optimizer.learning_rate(global_step, run_length, CLASSIC), CLASSIC)
        batches = [tuple(map(tf.constant, batch)) for batch in BATCHES[: len(devices)]]
        with multi_gpu.variables_on(variable_device):
            losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt)
        train_op = optimizer.train_op(
            opt, multi_gpu.average_gradients(tower_grads), global_step, run_length, CLASSIC
        )
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        rng = np.random.RandomState(1)
        metadata, config = tf.RunMetadata(), machine.session_config(devices)
        if devices == LOGICAL_GPUS:
            config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[512] * 4)
        # Fused nodes would have other names.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            for _, variable in sorted(variables.items()):
                if variable is not global_step:
                    variable.load(rng.normal(0, 0.03, variable.shape.as_list()), session)
            before = session.run(variables)
            found, _ = session.run(
                [losses, train_op],
                options=tf.RunOptions(output_partition_graphs=True),
                run_metadata=metadata,
            )
            changes = {name: value - before[name] for name, value in session.run(variables).items()}
    nodes = [node for partition in metadata.partition_graphs for node in partition.node]
    return found, changes, [(node.name, node.op, node.device) for node in nodes]


@functools.lru_cache(maxsize=None)
def _update_on_the_cpu(num_towers):
    return _update([f'/cpu:{i}' for i in range(num_towers)])[:2]


def _assert_update(devices, variable_devices, losses, changes, operations):
    """Assert that each tower was on its device, the variables too, and the result is the CPU's.

    Soft placement would silently use the CPU.
    """
    products = {
        'Conv2D',
        'Conv2DBackpropFilter',
        'Conv2DBackpropInput',
        'MatMul',
        'LRN',
        'LRNGrad',
        'MaxPoolGrad',
    }
    found = {
        (name.split('/')[0], kind, device.rpartition('device:')[2])
        for name, kind, device in operations
        if kind in products and name.startswith('tower_')
    }
    assert found == {
        (f'tower_{i}', kind, 'GPU:' + device.rpartition(':')[2])
        for i, device in enumerate(devices)
        for kind in products
    }
    holders = {
        device.rpartition('device:')[2]
        for name, kind, device in operations
        if kind == 'VarHandleOp' and name != 'global_step'
    }
    assert holders == variable_devices
    expected_losses, expected = _update_on_the_cpu(len(devices))
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for name, change in expected.items():
        assert np.linalg.norm(changes[name] - change) <= TOLERANCE * np.linalg.norm(change), name


def test_an_update_of_two_towers():
    devices = multi_gpu.tower_devices(2)
    _assert_update(devices, {'CPU:0'}, *_update(devices))


@pytest.fixture(scope='module')
def logical_gpus():
    """A process that divides the first GPU into four; it ends with this module."""
    with multiprocessing.get_context('spawn').Pool(1, _set_up) as pool:
        yield pool


@pytest.mark.parametrize('variable_device', ['/cpu:0', '/gpu:0'])
def test_an_update_of_four_logical_gpus(logical_gpus, variable_device):
    update = logical_gpus.apply_async(_update, (LOGICAL_GPUS, variable_device))
    holder = variable_device[1:].upper()
    _assert_update(LOGICAL_GPUS, {holder}, *update.get(forks.DEADLINE_SECS))


def _evaluate(path, data_dir, device):
    """Return the Metrics of a checkpoint on the test images."""
    test = dataset.read(data_dir).test
    return evaluation.Evaluator(test, device).evaluate(checkpoint.read(str(path))).metrics


def _assert_learnt(stdout):
    """Assert that the loss begins at that of equal probabilities, and falls; and the precision."""
    losses = [float(loss) for _, loss, *_ in messages.log_lines(stdout)]
    assert losses[0] == pytest.approx(np.log(10), abs=0.05)
    assert np.mean(losses[-10:]) < 1.8
    ((_, correct, step),) = re.findall(messages.precision(50), stdout)
    assert int(correct) > 15 and step == '100'  # 5 is chance


def test_one_tower_learns(trained):
    directory, stdout = trained
    plan = '; devices /gpu:0; weights on /gpu:0\n'
    assert plan in stdout
    _assert_learnt(stdout)
    assert 'device:GPU:0' in (directory / 'trace-3.json').read_text()


def test_four_towers_learn(tmp_path, data_dir, gpus):
    """They share the GPUs if there are fewer."""
    flags = ['--num_gpus=4', '--batch_size=8']
    stdout = _train('cifar10_multi_gpu_train', data_dir, tmp_path, *flags)
    devices = (gpus * 4)[:4]
    assert f'; devices {", ".join(devices)}; weights on ' in stdout
    assert ('GPUs are shared\n' in stdout) == (len(gpus) < 4)
    _assert_learnt(stdout)


def test_an_export_predicts_on_the_cpu_what_the_gpu_evaluates(tmp_path, data_dir, trained):
    directory, _ = trained
    status, _, stderr = programs.run(
        'cifar10_export', f'--checkpoint_dir={directory}', f'--export_dir={tmp_path}'
    )
    assert status == 0, stderr
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    metrics = _evaluate(directory / 'model.ckpt-100', data_dir, '/gpu:0')
    expected = np.exp(metrics.log_probabilities)
    found = oracle.exported_probabilities(f'{tmp_path}/1', images)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize('devices', [('gpu', 'cpu'), ('cpu', 'gpu')])
def test_a_run_continues_on_another_device(tmp_path, data_dir, devices):
    for device, last_step in zip(devices, (3, 4)):
        flags = faults.job(data_dir, tmp_path, f'--max_steps={last_step}')
        if device == 'gpu':
            status, stdout, stderr = programs.call('cifar10_train', *flags)
        else:
            status, stdout, stderr = programs.run(
                'cifar10_train', *flags, CUDA_VISIBLE_DEVICES='-1'
            )
        assert status == 0 and f'; devices /{device}:0; weights on ' in stdout, stderr
    assert messages.resuming(tmp_path, 3) in stdout and messages.log_steps(stdout) == ['4']
    before, after = [checkpoint.read(f'{tmp_path}/model.ckpt-{step}').values for step in (3, 4)]
    change = {name: np.abs(after[name] - before[name]).max() for name in before}
    assert change.pop('global_step') == 1
    assert len(change) == 20 and all(0 < value < 0.1 for value in change.values())


def test_an_evaluation_beside_a_trainer(tmp_path, data_dir, trained):
    """Neither process allocates all memory of the GPU."""
    directory, _ = trained
    flags = faults.job(data_dir, tmp_path / 'other', '--log_frequency=20')
    trainer = programs.start('cifar10_train', *flags, wrapper=programs.AS_A_USER)
    faults.read_until(trainer, ': step 20,')
    status, stdout, stderr = programs.run(
        'cifar10_eval',
        '--use_gpu',
        '--run_once',
        f'--predictions_file={tmp_path}/predictions.csv',
        *faults.evaluation(data_dir, directory, tmp_path / 'eval'),
        wrapper=programs.AS_A_USER,
    )
    assert status == 0 and 'No GPU' not in stdout, stderr
    assert trainer.poll() is None
    found = np.loadtxt(f'{tmp_path}/predictions.csv', delimiter=',', skiprows=1)[:, 2:]
    expected = _evaluate(directory / 'model.ckpt-100', data_dir, '/cpu:0').log_probabilities
    # This process computes in float32, the other one as users do.
    np.testing.assert_allclose(found, np.exp(expected), atol=2e-2)
