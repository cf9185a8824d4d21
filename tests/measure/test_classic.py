"""The package against the classic formulation, from equal weights, batches and draws."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import distortions, multi_gpu, optimizer
from cifar10.data import dataset
from cifar10.hparams import CLASSIC
from cifar10.measure import classic as cifar10_classic
from tests.helpers import oracle

BATCH, STEPS = 128, 50


class _Trainer:
    """A training step of build(images, labels, draws, hparams), which returns the train op and the loss, in a session."""

    def __init__(self, build, hparams):
        with tf.Graph().as_default(), tf.device('/cpu:0'):
            self._inputs = [tf.placeholder(tf.uint8, [BATCH, 32, 32, 3]), tf.placeholder(tf.int32, [BATCH])]
            self._inputs += [tf.placeholder(dtype, [BATCH]) for dtype in (tf.int32, tf.int32, tf.bool, tf.float32, tf.float32)]
            self._train_op, self._loss = build(self._inputs[0], self._inputs[1], self._inputs[2:], hparams)
            self._variables = {variable.op.name: variable for variable in tf.global_variables()}
            self._session = tf.Session(config=multi_gpu.session_config(['/cpu:0', '/cpu:1']))
            self._session.run(tf.global_variables_initializer())

    def load(self, values):
        for name, value in values.items():
            self._variables[name].load(value, self._session)

    def values(self):
        return self._session.run(self._variables)

    def step(self, batch):
        return self._session.run([self._loss, self._train_op], dict(zip(self._inputs, batch)))[0]


def _initial_values():
    rng = np.random.RandomState(0)
    values = {}
    for name, shape, stddev in [('conv1', [5, 5, 3, 64], 0.05), ('conv2', [5, 5, 64, 64], 0.05), ('local3', [2304, 384], 0.04),
                                ('local4', [384, 192], 0.04), ('softmax_linear', [192, 10], 1 / 192)]:
        draws = rng.normal(size=[2] + shape)
        values[name + '/weights'] = stddev * np.where(np.abs(draws[0]) < 2, draws[0], 0.5 * draws[1])
        values[name + '/weights/ExponentialMovingAverage'] = values[name + '/weights']
    return values


def _batches(data_dir):
    labels, images = oracle.read_records(dataset.train_files(data_dir))
    rng = np.random.RandomState(1)
    for _ in range(STEPS):
        batch = rng.choice(len(labels), BATCH, replace=False)
        yield (images[batch], labels[batch], rng.randint(0, 9, BATCH), rng.randint(0, 9, BATCH), rng.rand(BATCH) < 0.5,
               rng.uniform(-63, 63, BATCH), rng.uniform(0.2, 1.8, BATCH))


def _classic(num_towers):
    def build(raw, labels, draws, hparams):
        images = tf.map_fn(lambda args: cifar10_classic.distort(*args), [raw] + draws, tf.float32)
        batches = list(zip(tf.split(images, num_towers), tf.split(labels, num_towers)))
        train_op, loss, _ = cifar10_classic.training_step(['/cpu:0', '/cpu:1'][:num_towers], batches, 50000, hparams)
        return train_op, loss
    return build


def _ours(num_towers, num_slices):
    def build(raw, labels, draws, hparams):
        rows, columns, mirror, _, contrast = draws
        images = distortions.distort(tf.transpose(raw, [0, 3, 1, 2]), rows, columns, mirror, contrast)
        global_step = tf.train.get_or_create_global_step()
        sgd = tf.train.GradientDescentOptimizer(optimizer.learning_rate(global_step, BATCH, 50000, hparams))
        batches = list(zip(tf.split(images, num_towers), tf.split(labels, num_towers)))
        losses, tower_grads = multi_gpu.tower_gradients(['/cpu:0', '/cpu:1'][:num_towers], batches, sgd, num_slices)
        train_op = optimizer.train(sgd, multi_gpu.average_gradients(tower_grads), global_step, hparams, np.inf)
        return train_op, tf.add_n(losses) / len(losses)
    return build


def test_the_first_50_losses_equal_those_of_the_classic_formulation(data_dir):
    """At a tenth of the learning rate: at 0.1 the classic formulation leaves itself if a weight is rounded differently."""
    classic, ours = trainers = [_Trainer(build, CLASSIC._replace(initial_learning_rate=0.01)) for build in (_classic(1), _ours(1, 4))]
    for trainer in trainers:
        trainer.load(_initial_values())
    losses = np.array([[classic.step(batch), ours.step(batch)] for batch in _batches(data_dir)])
    np.testing.assert_allclose(losses[:, 1], losses[:, 0], atol=1e-4)
    assert losses[-5:].mean() < losses[:5].mean() - 0.02  # it has gone some way


@pytest.mark.parametrize('num_towers, num_slices', [(1, 1), (1, 4), (2, 2)])
def test_each_of_50_steps_at_full_rate_equals_the_classic_one_from_the_same_weights(data_dir, num_towers, num_slices):
    """The moving averages, which the classic formulation may take of the weights before the update, apart.

    Where two values of a pooling window are nearly equal, rounding decides which one takes the gradient.
    """
    classic, ours = _Trainer(_classic(1), CLASSIC), _Trainer(_ours(num_towers, num_slices), CLASSIC)
    classic.load(_initial_values())
    for batch in _batches(data_dir):
        ours.load(classic.values())
        before, loss = classic.values(), ours.step(batch)
        np.testing.assert_allclose(loss, classic.step(batch), rtol=1e-5)
        values = ours.values()
        for name, value in classic.values().items():
            if not name.endswith('/ExponentialMovingAverage'):
                change = np.linalg.norm(value - before[name])
                assert change > 0 and np.linalg.norm(values[name] - value) <= 0.01 * change, name


def test_two_classic_towers_make_the_same_update_as_one(data_dir):
    trainers = [_Trainer(_classic(num_towers), CLASSIC) for num_towers in (1, 2)]
    for trainer in trainers:
        trainer.load(_initial_values())
        trainer.step(next(_batches(data_dir)))
    one, two = (trainer.values() for trainer in trainers)
    for name in ('conv1/weights', 'conv2/biases', 'local3/weights', 'softmax_linear/weights'):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-6)


def test_classic_input_gives_shuffled_standardised_batches(data_dir):
    images, labels = cifar10_classic.distorted_inputs(data_dir, 16)
    images, labels = cifar10_classic.prefetch_queue(images, labels, 2).dequeue()
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        batches = [session.run([images, labels]) for _ in range(20)]
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=10, ignore_live_threads=True)
    images, labels = (np.concatenate(parts) for parts in zip(*batches))
    assert images.shape == (320, 24, 24, 3) and len({image.tobytes() for image in images}) == 320
    np.testing.assert_allclose(images.mean((1, 2, 3)), 0, atol=1e-4)
    np.testing.assert_allclose(images.std((1, 2, 3)), 1, atol=1e-3)
    assert set(labels) == set(range(10))


def test_classic_input_draws_for_each_image(data_dir, monkeypatch):
    monkeypatch.setattr(cifar10_classic, 'distort', lambda image, *draws: tf.stack([tf.cast(draw, tf.float32) for draw in draws]))
    images, _ = cifar10_classic.distorted_inputs(data_dir, 100)
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        rows, columns, mirror, brightness, contrast = np.concatenate([session.run(images) for _ in range(40)]).T
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=10, ignore_live_threads=True)
    assert len(set(zip(rows, columns, mirror))) == 9 * 9 * 2
    assert len(set(contrast)) > 3900 and contrast.min() < 0.21 and contrast.max() > 1.79
    assert len(set(brightness)) > 3900 and brightness.min() < -62 and brightness.max() > 62
