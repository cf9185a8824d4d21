"""Towers, an update, the normalisation and an evaluation on GPUs, against the CPU or NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation, model, multi_gpu, optimizer, placement
from cifar10.config import CLASSIC, RunLength
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.system import machine
from tests.helpers import checkpoints, oracle

RNG = np.random.RandomState(0)
BATCHES = [
    (RNG.randn(8, 24, 24, 3).astype(np.float32), np.arange(8, dtype=np.int32)) for _ in range(2)
]
TOLERANCE = 2e-2  # Rounding can change the maximum of two nearly equal activations.

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def without_tf32():
    """Compute in float32: recent GPUs round factors to 10 bits of mantissa."""
    config = tf.config.experimental
    if not hasattr(config, 'tensor_float_32_execution_enabled'):  # TensorFlow 1.15
        yield
        return
    before = config.tensor_float_32_execution_enabled()
    config.enable_tensor_float_32_execution(False)
    yield
    config.enable_tensor_float_32_execution(before)


def _update(devices):
    """Update two towers once; return their losses, all variables, and the executed nodes."""
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step, run_length = (
            tf.train.get_or_create_global_step(),
            RunLength(examples_per_step=16, examples_per_epoch=16),
        )
        opt = optimizer.create(optimizer.learning_rate(global_step, run_length, CLASSIC), CLASSIC)
        batches = [tuple(map(tf.constant, batch)) for batch in BATCHES]
        losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt)
        train_op = optimizer.train_op(
            opt, multi_gpu.average_gradients(tower_grads), global_step, run_length, CLASSIC
        )
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        rng = np.random.RandomState(1)
        metadata, config = tf.RunMetadata(), machine.session_config(devices)
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
    return (
        found,
        changes,
        [node for partition in metadata.partition_graphs for node in partition.node],
    )


def test_each_tower_runs_on_its_gpu():
    """Soft placement would silently use the CPU."""
    devices = placement.tower_devices(2)
    _, _, nodes = _update(devices)
    products = {
        'Conv2D',
        'Conv2DBackpropFilter',
        'Conv2DBackpropInput',
        'MatMul',
        'LRN',
        'LRNGrad',
        'MaxPoolGrad',
    }
    for i, device in enumerate(devices):
        own = [
            node for node in nodes if node.name.startswith(f'tower_{i}/') and node.op in products
        ]
        assert {node.op for node in own} == products
        assert {node.device for node in own} == {
            '/job:localhost/replica:0/task:0/device:GPU:' + device.rpartition(':')[2]
        }
    assert {node.device.rpartition('device:')[2] for node in nodes if node.op == 'VarHandleOp'} == {
        'CPU:0'
    }


def test_an_update_equals_that_on_the_cpu():
    losses, changes, _ = _update(placement.tower_devices(2))
    expected_losses, expected, _ = _update(['/cpu:0', '/cpu:1'])
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for name, change in expected.items():
        assert np.linalg.norm(changes[name] - change) <= TOLERANCE * np.linalg.norm(change), name


def test_lrn_equals_its_definition():
    x, dy = [RNG.randn(2, 3, 3, 64).astype(np.float32) * 5 for _ in range(2)]
    with tf.device(placement.tower_devices(1)[0]):
        tensor = tf.constant(x)
        normalized = model.local_response_normalization(tensor, 'norm')
        (gradient,) = tf.gradients(normalized, tensor, tf.constant(dy))
    with tf.Session(config=machine.session_config(['/gpu:0'])) as session:
        found, found_gradient = session.run([normalized, gradient])
    np.testing.assert_allclose(found, oracle.lrn(x.astype(np.float64)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        found_gradient, oracle.lrn_gradient(x.astype(np.float64), dy), rtol=1e-4, atol=1e-5
    )


def test_an_evaluation_equals_that_on_the_cpu(tmp_path, data_dir):
    path, _ = checkpoints.save(tmp_path, 1)
    found, expected = [
        evaluation.Evaluator(dataset.read(data_dir).test, device)
        .evaluate(checkpoint.read(path))
        .metrics
        for device in placement.tower_devices(1) + ['/cpu:0']
    ]
    np.testing.assert_allclose(found.log_probabilities, expected.log_probabilities, atol=1e-3)
    np.testing.assert_array_equal(found.labels, expected.labels)
