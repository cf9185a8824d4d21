"""Device of each tower and variable, and equal updates for any placement."""

import dataclasses
import functools
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import model, multi_gpu, optimizer
from cifar10.cli import training_job
from cifar10.config import CLASSIC, FAST, RunLength
from cifar10.network import Network
from cifar10.system import machine

IMAGES = np.random.RandomState(0).randn(8, 24, 24, 3).astype(np.float32)
LABELS = np.arange(8, dtype=np.int32)
RUN_LENGTH = RunLength(examples_per_step=8, examples_per_epoch=16)
HPARAMS = {
    'classic': dataclasses.replace(CLASSIC, initial_learning_rate=0.02),
    'fast': dataclasses.replace(
        FAST, warmup_epochs=0.0, moving_average_fraction=0.0, moving_average_decay=0.3
    ),
}


@pytest.mark.parametrize(
    'gpus, towers, devices, message',
    [
        (4, 2, ['/gpu:0', '/gpu:1'], ''),
        (1, 2, ['/gpu:0', '/gpu:0'], 'Fewer GPUs (1) than requested (2): GPUs are shared\n'),
        (0, 2, ['/cpu:0', '/cpu:1'], 'No GPU found: using /cpu:0, /cpu:1 (if there is'),
    ],
)
def test_tower_devices(monkeypatch, capsys, gpus, towers, devices, message):
    monkeypatch.setattr(
        tf.config.experimental,
        'list_physical_devices',
        lambda kind: ['GPU'] * gpus if kind == 'GPU' else [],
    )
    assert training_job.find_devices(towers) == devices
    told = capsys.readouterr().out
    assert told.startswith(message) and bool(told) == bool(message)


def _build(hparams, devices, strategy):
    """Build the towers and their update; return losses, averaged gradients and the train op."""
    global_step = tf.train.get_or_create_global_step()
    opt = optimizer.create(optimizer.learning_rate(global_step, RUN_LENGTH, hparams), hparams)
    batches = list(zip(tf.split(IMAGES, len(devices)), tf.split(LABELS, len(devices))))
    network = Network(hparams=hparams)
    with multi_gpu.variables_on(machine.resources(devices, 1, strategy).variable_device):
        losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt, network)
    gradients = multi_gpu.average_gradients(tower_grads)
    return losses, gradients, optimizer.train_op(opt, gradients, global_step, RUN_LENGTH, hparams)


def _build_on_one_device(hparams):
    """Build the same without towers."""
    global_step = tf.train.get_or_create_global_step()
    opt = optimizer.create(optimizer.learning_rate(global_step, RUN_LENGTH, hparams), hparams)
    logits = model.inference(tf.constant(IMAGES), hparams=hparams)
    loss = model.loss(logits, LABELS, hparams=hparams)
    gradients = opt.compute_gradients(loss)
    return [loss], gradients, optimizer.train_op(opt, gradients, global_step, RUN_LENGTH, hparams)


def _update(build, devices):
    """Update three times from the same values; return the losses and the variables."""
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        losses, _, train_op = build()
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        rng = np.random.RandomState(1)
        with tf.Session(config=machine.session_config(devices)) as session:
            session.run(tf.global_variables_initializer())
            for name, variable in sorted(variables.items()):
                if name != 'global_step':
                    variable.load(rng.normal(0, 0.03, variable.shape.as_list()), session)
            losses = [np.mean(session.run([losses, train_op])[0]) for _ in range(3)]
            return losses, session.run(variables)


def _in_float32(recipe):
    """Return HParams; bfloat16 would round nearly equal sums differently."""
    return dataclasses.replace(HPARAMS[recipe], compute_dtype='float32')


@functools.lru_cache(maxsize=None)
def _update_on_one_device(recipe):
    return _update(lambda: _build_on_one_device(_in_float32(recipe)), ['/cpu:0'])


@pytest.mark.parametrize(
    'num_towers, strategy, recipe', [(4, 'cpu', 'classic'), (2, 'first_device', 'fast')]
)
def test_every_placement_makes_the_update_of_one_device(num_towers, strategy, recipe):
    devices = [f'/cpu:{i}' for i in range(num_towers)]
    losses, variables = _update(lambda: _build(_in_float32(recipe), devices, strategy), devices)
    one_losses, one_variables = _update_on_one_device(recipe)
    np.testing.assert_allclose(losses, one_losses, rtol=1e-5)
    assert abs(losses[2] - losses[0]) > 1e-3 and variables.keys() == one_variables.keys()
    for name, value in one_variables.items():
        np.testing.assert_allclose(variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    'strategy, holder', [('cpu', '/device:CPU:0'), ('first_device', '/device:GPU:0')]
)
def test_every_operation_is_on_its_device(graph, strategy, holder):
    devices = [f'/device:GPU:{i}' for i in range(2)]
    with tf.device('/cpu:0'):
        _, gradients, _ = _build(HPARAMS['fast'], devices, strategy)
    kinds = set()
    for variable in tf.global_variables():  # with slots and moving averages
        expected = holder if '/' in variable.op.name else '/device:CPU:0'  # the global step
        assert variable.device == expected, variable.op.name
    for gradient, variable in gradients:
        assert gradient.device == holder, variable.op.name
    for op in graph.get_operations():
        if re.match('update/[A-Za-z]+/update_([a-z0-9_]+/[a-z]+)/', op.name):
            assert op.device in ('', holder), op.name
        # A read of a variable has no device.
        if op.name.startswith('tower_') and op.device and op.type != 'NoOp':
            assert op.device == devices[int(op.name[6])], op.name
            kinds.add((op.type, op.device))
    for kind in ('Conv2DBackpropFilter', 'MatMul'):
        assert {(kind, device) for device in devices} <= kinds
