"""Towers: their equality with one tower, their devices, their average."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, optimizer
from cifar10.hparams import BEST, CLASSIC, FAST, Pace
from cifar10.runs import machine
from tests.helpers import networks

IMAGES = np.random.RandomState(0).randn(8, 24, 24, 3).astype(np.float32)
LABELS = np.arange(8, dtype=np.int32)
PACE = Pace(examples_per_step=8, examples_per_epoch=16)


def _train(num_towers, devices, hparams):
    """Three updates from equal weights with the batch split among the towers; returns mean losses
    and all variables."""
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(optimizer.learning_rate(global_step, PACE, hparams), hparams)
        batches = list(zip(tf.split(IMAGES, num_towers), tf.split(LABELS, num_towers)))
        losses, tower_grads = multi_gpu.tower_gradients(devices, batches, opt, networks.of(hparams))
        train_op = optimizer.train(
            opt, multi_gpu.average_gradients(tower_grads), global_step, PACE, hparams
        )
        assert (
            sum(int(np.prod(variable.shape.as_list())) for variable in tf.trainable_variables())
            == 1068298
        )
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        rng = np.random.RandomState(1)
        with tf.Session(config=machine.session_config(devices)) as session:
            session.run(tf.global_variables_initializer())
            for _, variable in sorted(variables.items()):
                if variable is not global_step:
                    variable.load(rng.normal(0, 0.03, variable.shape.as_list()), session)
            mean_losses = [np.mean(session.run([losses, train_op])[0]) for _ in range(3)]
            return mean_losses, session.run(variables)


@pytest.mark.parametrize(
    'num_towers, recipe',
    [
        (2, CLASSIC),
        pytest.param(4, CLASSIC, marks=pytest.mark.long),
        (4, FAST),
        pytest.param(2, BEST, marks=pytest.mark.slow),
        pytest.param(4, FAST._replace(optimizer='momentum'), marks=pytest.mark.slow),
    ],
)
def test_towers_make_the_update_of_one_tower(num_towers, recipe):
    """If each takes its part of the same batch."""
    hparams = recipe._replace(initial_learning_rate=0.02, warmup_epochs=0.0)
    losses, variables = _train(1, ['/cpu:0'], hparams)
    tower_losses, tower_variables = _train(
        num_towers, ['/cpu:%d' % i for i in range(num_towers)], hparams
    )
    np.testing.assert_allclose(tower_losses, losses, rtol=1e-5)
    assert losses[2] < losses[0]
    assert (
        len(variables) == (21 if recipe is CLASSIC else 31)
        and tower_variables.keys() == variables.keys()
    )
    for name, value in variables.items():
        np.testing.assert_allclose(tower_variables[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    'hparams, update, count',
    [(CLASSIC, 'ResourceApplyGradientDescent', 10), (FAST, 'ResourceApplyMomentum', 6)],
)
def test_gpu_towers_share_variables_on_the_cpu(graph, hparams, update, count):
    with tf.device('/cpu:0'):
        global_step = tf.train.get_or_create_global_step()
        opt = optimizer.create(tf.constant(0.1), hparams)
        batches = [(tf.constant(IMAGES), tf.constant(LABELS))] * 2
        _, tower_grads = multi_gpu.tower_gradients(
            ['/gpu:0', '/gpu:1'], batches, opt, networks.of(hparams)
        )
        optimizer.train(opt, multi_gpu.average_gradients(tower_grads), global_step, PACE, hparams)
    assert {variable.device for variable in tf.global_variables()} == {'/device:CPU:0'}
    for i in range(2):
        operations = [op for op in graph.get_operations() if op.name.startswith('tower_%d/' % i)]
        kinds = {op.type for op in operations if op.device == '/device:GPU:%d' % i}
        assert {
            'Conv2D',
            'Conv2DBackpropFilter',
            'Conv2DBackpropInput',
            'MaxPoolGrad',
            'MatMul',
            'ReluGrad',
        } <= kinds
        elsewhere = {op.type for op in operations if op.device != '/device:GPU:%d' % i}
        assert elsewhere <= {
            'ReadVariableOp',
            'VarHandleOp',
            'VarIsInitializedOp',
            'AssignVariableOp',
            'Const',
            'Add',
            'TruncatedNormal',
            'Mul',
            'Fill',
            'NoOp',
        }, elsewhere
    updates = [op for op in graph.get_operations() if op.type == update]
    assert len(updates) == count
    elsewhere = {
        op.type
        for op in graph.get_operations()
        if op.name.startswith('update/') and op.device != '/device:CPU:0'
    }
    assert elsewhere <= {'NoOp', 'ReadVariableOp'}  # a variable is read where it is


@pytest.mark.parametrize(
    'gpus, towers, devices, message',
    [
        (4, 2, ['/gpu:0', '/gpu:1'], ''),
        (
            2,
            5,
            ['/gpu:0', '/gpu:1', '/gpu:0', '/gpu:1', '/gpu:0'],
            'Fewer GPUs (2) than asked for (5): they are shared\n',
        ),
        (1, 2, ['/gpu:0', '/gpu:0'], 'Fewer GPUs (1) than asked for (2): they are shared\n'),
        (
            0,
            3,
            ['/cpu:0', '/cpu:1', '/cpu:2'],
            "No GPU found: using /cpu:0, /cpu:1, /cpu:2 (if there is an NVIDIA GPU: pip install 'tensorflow[and-cuda]' on Linux; "
            'TF_CPP_MIN_LOG_LEVEL=0 shows what TensorFlow says about GPUs)\n',
        ),
    ],
)
def test_tower_devices(monkeypatch, capsys, gpus, towers, devices, message):
    monkeypatch.setattr(
        tf.config.experimental,
        'list_physical_devices',
        lambda kind: ['GPU'] * gpus if kind == 'GPU' else [],
    )
    assert multi_gpu.tower_devices(towers) == devices
    assert capsys.readouterr().out == message


def _variables():
    return [tf.get_variable(name, [2], tf.float32) for name in ('first', 'second', 'third')]


def test_average_gradients():
    first, second, third = _variables()
    averages = multi_gpu.average_gradients(
        [
            [(tf.constant([1.0, 2.0]), first), (None, second), (tf.constant([0.0, 0.0]), third)],
            [(tf.constant([3.0, 6.0]), first), (None, second), (tf.constant([1.0, 0.0]), third)],
            [(tf.constant([2.0, 1.0]), first), (None, second), (tf.constant([5.0, 3.0]), third)],
        ]
    )
    assert [variable for _, variable in averages] == [first, third]
    with tf.Session() as session:
        assert [session.run(gradient).tolist() for gradient, _ in averages] == [[2, 3], [2, 1]]


def test_towers_that_disagree():
    first, second, third = _variables()
    gradient = tf.constant([1.0, 2.0])
    for tower, complaint in [
        (
            [(gradient, first), (None, second)],
            r'second has a gradient in some towers, but none in towers \[1\]',
        ),
        ([(gradient, first), (gradient, third)], 'disagree on a variable: second, third'),
        (
            [(gradient, first), (tf.zeros([3]), second)],
            r'gradients of second have different shapes: \(2,\), \(3,\)',
        ),
        ([(gradient, first)], r'different numbers of variables: \[2, 1\]'),
    ]:
        with pytest.raises(ValueError, match=complaint):
            multi_gpu.average_gradients([[(gradient, first), (gradient, second)], tower])


def test_tower_loss_is_that_of_its_own_images():
    with tf.name_scope('tower_0') as scope:
        alone = multi_gpu.tower_loss(scope, tf.constant(IMAGES[:4]), tf.constant(LABELS[:4]))
    with tf.name_scope('tower_1') as scope, tf.variable_scope('', reuse=True):
        second = multi_gpu.tower_loss(scope, tf.constant(IMAGES[:4]), tf.constant(LABELS[:4]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        alone, second = session.run([alone, second])
    assert alone == pytest.approx(second)


def test_tower_loss_follows_the_hyperparameters():
    tf.set_random_seed(1)  # else the smoothing may by chance change almost nothing
    losses = []
    for i, hparams in enumerate(
        [CLASSIC, CLASSIC._replace(fc_weight_decay=0.0), CLASSIC._replace(label_smoothing=0.5)]
    ):
        with tf.name_scope('tower_%d' % i) as scope, tf.variable_scope('', reuse=tf.AUTO_REUSE):
            losses.append(
                multi_gpu.tower_loss(
                    scope, tf.constant(IMAGES), tf.constant(LABELS), networks.of(hparams)
                )
            )
    decay = tf.add_n(tf.get_collection('losses', 'tower_0/')[:2])
    cross_entropies = [tf.get_collection('losses', 'tower_%d/' % i)[-1] for i in range(3)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses, decay, cross_entropies = session.run([losses, decay, cross_entropies])
    assert decay > 1 and abs(cross_entropies[2] - cross_entropies[0]) > 1e-4
    np.testing.assert_allclose(
        losses,
        [cross_entropies[0] + decay, cross_entropies[0], cross_entropies[2] + decay],
        rtol=1e-6,
    )
