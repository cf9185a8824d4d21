"""Threads and sub-batches by the number of cores, session configuration, graph mode."""

import os
from types import SimpleNamespace

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.client import device_lib

from cifar10.system import machine
from cifar10.system.machine import Threads


def _cpus(count):
    return [f'/cpu:{i}' for i in range(count)]


def _gpus(count):
    return [f'/gpu:{i}' for i in range(count)]


def test_names_of_gpus():
    assert [
        machine.is_gpu(name)
        for name in ('/gpu:1', '/GPU:0', '/device:GPU:0', '/cpu:0', '/device:CPU:1')
    ] == [True, True, True, False, False]
    assert dict(machine.session_config(['/device:GPU:0', '/GPU:1']).device_count) == {
        'CPU': 1,
        'GPU': 2,
    }
    config = machine.session_config(['/device:CPU:0', '/cpu:1'])
    assert dict(config.device_count) == {'CPU': 2, 'GPU': 0}
    assert config.gpu_options.allow_growth and config.allow_soft_placement
    assert not config.log_device_placement


@pytest.mark.parametrize(
    'cores, devices, batch_size, given, chosen, sub_batches',
    [
        (2, _cpus(1), 128, Threads(), Threads(1, 2, 1), 4),
        (2, _cpus(3), 128, Threads(), Threads(1, 2, 2), 1),
        (8, _cpus(2), 128, Threads(), Threads(1, 8, 2), 8),
        # At least 8 examples per sub-batch leave too few sub-batches for the cores.
        (64, _cpus(1), 128, Threads(), Threads(64, 64, 1), 16),
        (2, _cpus(1), 5, Threads(), Threads(2, 2, 1), 1),
        (4, _cpus(1), 32, Threads(), Threads(1, 4, 1), 4),  # one sub-batch per core
        (8, _cpus(1), 128, Threads(inter_op=2), Threads(1, 2, 1), 4),
        (8, _cpus(1), 128, Threads(4, 2, 3), Threads(4, 2, 3), 4),
        (8, _gpus(4), 128, Threads(), Threads(8, 8, 4), 1),
        (1, _gpus(2), 128, Threads(), Threads(1, 1, 1), 1),
    ],
)
def test_threads_and_sub_batches(
    monkeypatch, cores, devices, batch_size, given, chosen, sub_batches
):
    monkeypatch.setattr(machine, 'num_cores', lambda: cores)
    number = machine.num_sub_batches(devices, batch_size, given.inter_op)
    threads = machine.resources(devices, number, overrides=given).threads
    assert (threads, number) == (chosen, sub_batches)


@pytest.mark.parametrize('number, chosen', [(1, Threads(4, 4, 2)), (2, Threads(1, 4, 2))])
def test_threads_of_a_network_with_fewer_sub_batches(monkeypatch, number, chosen):
    """Four cores for two towers: they share the operations of an undivided batch."""
    monkeypatch.setattr(machine, 'num_cores', lambda: 4)
    assert machine.resources(_cpus(2), number).threads == chosen


@pytest.mark.skipif(
    not hasattr(os, 'sched_setaffinity'), reason='this system does not bind processes to cores'
)
def test_only_cores_that_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert machine.num_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert machine.num_cores() == len(allowed)


def test_a_session_with_chosen_threads():
    config = machine.session_config(_cpus(1), Threads(1, 3, 1), log_device_placement=True)
    assert config.log_device_placement
    assert (config.intra_op_parallelism_threads, config.inter_op_parallelism_threads) == (1, 3)
    rewrite = config.graph_options.rewrite_options
    assert rewrite.meta_optimizer_iterations == rewrite.ONE
    # The baseline of the benchmark has TensorFlow's threads and graph optimizers.
    config = machine.session_config(_cpus(1))
    assert (config.intra_op_parallelism_threads, config.inter_op_parallelism_threads) == (0, 0)
    assert not config.HasField('graph_options')


def test_graph_mode(graph):
    """A tf.cond stays in the graph, without deprecation warnings."""
    verbosity = tf.logging.get_verbosity()
    try:
        tf.logging.set_verbosity(tf.logging.INFO)
        tf.enable_control_flow_v2()
        machine.set_up_tensorflow()
        tf.cond(tf.constant(True), lambda: 1, lambda: 2)
        assert {'Switch', 'Merge'} <= {op.type for op in graph.get_operations()}
        assert tf.logging.get_verbosity() == tf.logging.FATAL
    finally:
        tf.logging.set_verbosity(verbosity)
        tf.disable_control_flow_v2()


@pytest.mark.parametrize('allow_growth', [True, False])
def test_descriptions_of_gpus(monkeypatch, allow_growth):
    """Names of TensorFlow's DeviceAttributes; memory is allocated by the session's config."""
    described = (
        'device: 0, name: Tesla V100-SXM2-16GB, pci bus id: 0000:00:1e.0, compute capability: 7.0'
    )
    used = []

    def listed(config):
        used.append(config.gpu_options.allow_growth)
        return [SimpleNamespace(device_type='CPU', physical_device_desc='')] + 2 * [
            SimpleNamespace(device_type='GPU', physical_device_desc=described)
        ]

    monkeypatch.setattr(device_lib, 'list_local_devices', listed)
    monkeypatch.setattr(tf.config.experimental, 'list_physical_devices', lambda kind: ['GPU'] * 2)
    config = None if allow_growth else tf.ConfigProto()
    assert machine.gpu_names(config) == ['Tesla V100-SXM2-16GB'] * 2 and used == [allow_growth]
    monkeypatch.setattr(tf.config.experimental, 'list_physical_devices', lambda kind: [])
    assert machine.gpu_names(config) == [] and len(used) == 1
