"""Hidden layers in bfloat16: choice, values, checkpoints."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import evaluation, multi_gpu, training
from cifar10.cli import training_job
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.network import Network
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_train
from cifar10.system import machine
from tests.helpers import changed_networks

BFLOAT16 = dataclasses.replace(CLASSIC, compute_dtype='bfloat16')
has_kernels = pytest.mark.skipif(
    tf.__version__.startswith('1.'), reason='TensorFlow 1.15 has no convolutions in bfloat16'
)


def _imitate(monkeypatch, tmp_path, flags):
    """Imitate a processor with these flags, and an environment without settings of oneDNN."""
    monkeypatch.delenv('TF_ENABLE_ONEDNN_OPTS', raising=False)
    path = tmp_path / 'cpuinfo'
    path.write_text(f'processor\t: 0\nmodel name\t: Some\nflags\t\t: fpu {flags} sse\n')
    monkeypatch.setattr(machine, '_CPU_INFO_FILE', str(path))


@has_kernels
@pytest.mark.parametrize(
    'flags, onednn, is_gpu, expected',
    [
        ('avx512f avx512_bf16', None, False, tf.bfloat16),
        ('avx2 amx_bf16', None, False, tf.bfloat16),
        ('avx512_bf16', '1', False, tf.bfloat16),
        ('avx512_bf16', '0', False, tf.float32),  # The kernels without oneDNN are slow.
        ('avx512_bf16', 'False', False, tf.float32),
        ('avx512f avx512_vnni amx_int8', None, False, tf.float32),
        ('avx512_bf16_other', None, False, tf.float32),
        ('avx512_bf16', None, True, tf.float32),
    ],
)
def test_auto_depends_on_the_processor(monkeypatch, tmp_path, flags, onednn, is_gpu, expected):
    _imitate(monkeypatch, tmp_path, flags)
    if onednn:
        monkeypatch.setenv('TF_ENABLE_ONEDNN_OPTS', onednn)
    assert machine.compute_dtype('auto', is_gpu) == expected
    for given in (tf.float32, tf.bfloat16):
        assert machine.compute_dtype(given.name, is_gpu) == given


@has_kernels
@pytest.mark.parametrize(
    'flags, device, expected',
    [
        ('avx512_bf16', '/cpu:0', tf.bfloat16),
        ('avx512_bf16', '/gpu:0', tf.float32),
        ('avx512f', '/cpu:0', tf.float32),
    ],
)
def test_auto_in_plan_and_network(graph, monkeypatch, tmp_path, data_dir, flags, device, expected):
    """The images come from another device."""
    _imitate(monkeypatch, tmp_path, flags)
    with tf.device('/cpu:1'):
        images = tf.zeros([4, 24, 24, 3])
    with tf.device(device):
        cifar10.inference(images, hparams=FAST)
    convolutions = [op for op in graph.get_operations() if op.type == 'Conv2D']
    assert {op.get_attr('T') for op in convolutions} == {expected}
    plan = training_job.print_plan(training.create_job(dataset.read(data_dir), FAST, [device]), 0)
    assert any(
        line.endswith(f', products of the hidden layers in {expected.name}') for line in plan
    )


@has_kernels
def test_the_plan_of_a_network_without_casts(tmp_path, data_dir):
    """The network of the exercises multiplies in float32, whatever compute_dtype is."""
    path = changed_networks.write(tmp_path, 'residual')
    job = training.create_job(dataset.read(data_dir), BFLOAT16, network_name=path)
    assert training_job.print_plan(job, 0)[2].endswith(' products of the hidden layers in float32')


def test_auto_without_information_about_the_processor(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, '_CPU_INFO_FILE', str(tmp_path / 'missing'))
    assert machine.compute_dtype('auto', False) == tf.float32


def test_a_version_of_tensorflow_without_kernels(monkeypatch, tmp_path):
    _imitate(monkeypatch, tmp_path, 'avx512_bf16')
    monkeypatch.setattr(tf, '__version__', '1.15.5')
    assert machine.compute_dtype('auto', False) == tf.float32


@has_kernels
def test_only_products_on_gpus_are_in_bfloat16(graph, monkeypatch, tmp_path):
    """The types in the graph of two towers; the images come from the CPU.

    The products of the output layer are in float32.
    """
    _imitate(monkeypatch, tmp_path, '')
    images, labels = tf.zeros([4, 24, 24, 3]), tf.zeros([4], tf.int32)
    opt = tf.train.GradientDescentOptimizer(0.1)
    devices = ['/device:GPU:0', '/device:GPU:1']
    _, tower_grads = multi_gpu.tower_gradients(
        devices, [(images, labels)] * 2, opt, Network(hparams=BFLOAT16)
    )
    for kind, layer, dtype in [
        ('Conv2D', 'conv1/', tf.bfloat16),
        ('Conv2DBackpropFilter', 'conv1/', tf.bfloat16),
        ('Conv2DBackpropInput', 'conv2/', tf.bfloat16),
        ('MaxPool', 'pool1', tf.float32),
        ('LRN', 'norm1', tf.float32),
        ('MatMul', 'local3/', tf.bfloat16),
        ('MatMul', 'local4/', tf.bfloat16),
        ('MatMul', 'softmax_linear/', tf.float32),
    ]:
        operations = [op for op in graph.get_operations() if op.type == kind and layer in op.name]
        assert {op.get_attr('T') for op in operations} == {dtype}, layer
    values = [tensor for grads in tower_grads for pair in grads for tensor in pair]
    assert {value.dtype.base_dtype for value in values} == {tf.float32}


def _train(data_dir, train_dir, compute_dtype, max_steps):
    job = training.create_job(
        dataset.read(data_dir),
        dataclasses.replace(CLASSIC, batch_size=8, compute_dtype=compute_dtype),
        settings=RunSettings(max_steps, seed=1, deterministic=True, eval_every=0),
    )
    with open_run(str(train_dir), training.record(job)) as run:
        cifar10_train.train(job, run)
    return checkpoint.read_latest(str(train_dir))


@has_kernels
@pytest.mark.slow
def test_checkpoints_of_both_types_are_interchangeable(tmp_path, data_dir):
    """A run of each type is resumed with the other; two equal runs are equal bit for bit."""
    ends = []
    for name, first, second in [
        ('a', 'float32', 'bfloat16'),
        ('b', 'bfloat16', 'float32'),
        ('c', 'bfloat16', 'float32'),
    ]:
        saved = _train(data_dir, tmp_path / name, first, 3)
        types = {value.dtype for value in saved.values.values()}
        assert saved.step == 3 and types == {np.dtype('float32'), np.dtype('int64')}
        end = _train(data_dir, tmp_path / name, second, 5)
        assert end.step == 5
        result = evaluation.Evaluator(dataset.read(data_dir).test).evaluate(end)
        assert np.isfinite(result.losses['losses/cross_entropy'])
        ends.append(end.values)
    a, b, c = ends
    for name, value in b.items():
        np.testing.assert_array_equal(c[name], value, err_msg=name)
    weights = 'conv2/weights'
    difference = np.abs(a[weights] - b[weights]).max()
    assert 0 < difference < 0.01 * np.abs(b[weights]).max()
