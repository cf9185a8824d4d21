"""The package against the classic formulation, from equal weights, batches and draws."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import distortions, multi_gpu, optimizer
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, Intervals, Pace
from cifar10.measure import classic
from cifar10.runs import machine
from cifar10.training import Job
from tests.helpers import events, networks, oracle, queues
from tests.helpers.small_run import LINE

BATCH = 128
PACE = Pace(BATCH, 50000)


class _Trainer:
    """A training step of build(images, labels, draws, hparams), which returns the train op and the
    loss, in a session."""

    def __init__(self, build, hparams):
        with tf.Graph().as_default(), tf.device('/cpu:0'):
            self._inputs = [
                tf.placeholder(tf.uint8, [BATCH, 32, 32, 3]),
                tf.placeholder(tf.int32, [BATCH]),
            ]
            self._inputs += [
                tf.placeholder(dtype, [BATCH])
                for dtype in (tf.int32, tf.int32, tf.bool, tf.float32, tf.float32)
            ]
            self._train_op, self._loss = build(
                self._inputs[0], self._inputs[1], self._inputs[2:], hparams
            )
            self._variables = {variable.op.name: variable for variable in tf.global_variables()}
            self._session = tf.Session(config=machine.session_config(['/cpu:0', '/cpu:1']))
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
    for name, shape, stddev in [
        ('conv1', [5, 5, 3, 64], 0.05),
        ('conv2', [5, 5, 64, 64], 0.05),
        ('local3', [2304, 384], 0.04),
        ('local4', [384, 192], 0.04),
        ('softmax_linear', [192, 10], 1 / 192),
    ]:
        draws = rng.normal(size=[2] + shape)
        values[name + '/weights'] = stddev * np.where(
            np.abs(draws[0]) < 2, draws[0], 0.5 * draws[1]
        )
        values[name + '/weights/ExponentialMovingAverage'] = values[name + '/weights']
    return values


def _batches(data_dir, steps=50):
    labels, images = oracle.read_records(dataset.read(data_dir).train.paths)
    rng = np.random.RandomState(1)
    for _ in range(steps):
        batch = rng.choice(len(labels), BATCH, replace=False)
        yield (
            images[batch],
            labels[batch],
            rng.randint(0, 9, BATCH),
            rng.randint(0, 9, BATCH),
            rng.rand(BATCH) < 0.5,
            rng.uniform(-63, 63, BATCH),
            rng.uniform(0.2, 1.8, BATCH),
        )


def _classic(num_towers):
    def build(raw, labels, draws, hparams):
        images = tf.map_fn(lambda args: classic.distort(*args), [raw] + draws, tf.float32)
        batches = list(zip(tf.split(images, num_towers), tf.split(labels, num_towers)))
        train_op, loss, _ = classic.training_step(
            Job(dataset.read(''), 50000, hparams, ['/cpu:0', '/cpu:1'][:num_towers]), batches
        )
        return train_op, loss

    return build


def _ours(num_towers, num_slices):
    def build(raw, labels, draws, hparams):
        rows, columns, mirror, _, contrast = draws
        images = distortions.distort(
            tf.transpose(raw, [0, 3, 1, 2]), rows, columns, mirror, contrast
        )
        global_step = tf.train.get_or_create_global_step()
        sgd = tf.train.GradientDescentOptimizer(optimizer.learning_rate(global_step, PACE, hparams))
        batches = list(zip(tf.split(images, num_towers), tf.split(labels, num_towers)))
        network = networks.of(hparams, num_slices)
        losses, tower_grads = multi_gpu.tower_gradients(
            ['/cpu:0', '/cpu:1'][:num_towers], batches, sgd, network
        )
        train_op = optimizer.train(
            sgd, multi_gpu.average_gradients(tower_grads), global_step, PACE, hparams
        )
        return train_op, tf.add_n(losses) / len(losses)

    return build


@pytest.mark.long
def test_50_losses_equal_the_classic_ones(data_dir):
    """At a tenth of the learning rate: at 0.1 the classic formulation leaves itself if a weight is
    rounded differently."""
    hparams = CLASSIC._replace(initial_learning_rate=0.01)
    theirs, ours = trainers = [_Trainer(build, hparams) for build in (_classic(1), _ours(1, 4))]
    for trainer in trainers:
        trainer.load(_initial_values())
    losses = np.array([[theirs.step(batch), ours.step(batch)] for batch in _batches(data_dir)])
    np.testing.assert_allclose(losses[:, 1], losses[:, 0], atol=1e-4)
    assert losses[-5:].mean() < losses[:5].mean() - 0.02  # it has gone some way


@pytest.mark.slow
def test_each_step_equals_the_classic_one(data_dir):
    """At the full rate, from the same weights each time: with four slices, and in the first step
    also with one and with two towers.

    The moving averages, which the classic formulation may take of the weights before the update,
    apart. Where two values of a pooling window are nearly equal, rounding decides which one takes
    the gradient.
    """
    theirs = _Trainer(_classic(1), CLASSIC)
    all_of_ours = {sizes: _Trainer(_ours(*sizes), CLASSIC) for sizes in ((1, 1), (1, 4), (2, 2))}
    theirs.load(_initial_values())
    after = theirs.values()
    for step, batch in enumerate(_batches(data_dir, 8)):
        before, loss, after = after, theirs.step(batch), theirs.values()
        for sizes, ours in all_of_ours.items():
            if step and sizes != (1, 4):
                continue
            ours.load(before)
            np.testing.assert_allclose(ours.step(batch), loss, rtol=1e-5)
            values = ours.values()
            for name, value in after.items():
                if not name.endswith('/ExponentialMovingAverage'):
                    change = np.linalg.norm(value - before[name])
                    assert change > 0 and np.linalg.norm(values[name] - value) <= 0.01 * change, (
                        name,
                        sizes,
                    )


def test_two_towers_make_the_same_update_as_one(data_dir):
    trainers = [_Trainer(_classic(num_towers), CLASSIC) for num_towers in (1, 2)]
    for trainer in trainers:
        trainer.load(_initial_values())
        trainer.step(next(_batches(data_dir)))
    one, two = (trainer.values() for trainer in trainers)
    for name in ('conv1/weights', 'conv2/biases', 'local3/weights', 'softmax_linear/weights'):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-6)


def test_input_is_shuffled_and_standardised(data_dir):
    images, labels = classic.distorted_inputs(data_dir, 16)
    batches = queues.run(classic.prefetch_queue(images, labels, 2).dequeue(), 20)
    images, labels = (np.concatenate(parts) for parts in zip(*batches))
    assert images.shape == (320, 24, 24, 3) and len({image.tobytes() for image in images}) == 320
    np.testing.assert_allclose(images.mean((1, 2, 3)), 0, atol=1e-4)
    np.testing.assert_allclose(images.std((1, 2, 3)), 1, atol=1e-3)
    assert set(labels) == set(range(10))


def test_input_draws_for_each_image(data_dir, monkeypatch):
    monkeypatch.setattr(
        classic,
        'distort',
        lambda image, *draws: tf.stack([tf.cast(draw, tf.float32) for draw in draws]),
    )
    images, _ = classic.distorted_inputs(data_dir, 100)
    rows, columns, mirror, brightness, contrast = np.concatenate(queues.run(images, 40)).T
    assert len(set(zip(rows, columns, mirror))) == 9 * 9 * 2
    assert len(set(contrast)) > 3900 and contrast.min() < 0.21 and contrast.max() > 1.79
    assert len(set(brightness)) > 3900 and brightness.min() < -62 and brightness.max() > 62


def test_train_prints_writes_and_saves(tmp_path, data_dir, capsys):
    job = Job(
        dataset.read(data_dir),
        300,
        CLASSIC._replace(batch_size=8),
        ['/cpu:0', '/cpu:1'],
        max_steps=5,
        intervals=Intervals(log_frequency=2, summary_steps=2, checkpoint_steps=4),
    )
    classic.train(job, str(tmp_path / 'run'))
    lines = LINE.findall(capsys.readouterr().out)
    assert [step for step, *_ in lines] == ['2', '4'] and all(
        3 < float(loss) < 7 for _, loss, _, _ in lines
    )
    for _, _, examples_per_sec, sec_per_batch in lines:  # a batch is one tower's
        assert float(sec_per_batch) == pytest.approx(8 / float(examples_per_sec), abs=0.0006)
    assert sorted(path.name for path in (tmp_path / 'run').glob('*.index')) == [
        'model.ckpt-4.index',
        'model.ckpt-5.index',
    ]
    assert [
        step for step, tag, _ in events.scalars(tmp_path / 'run') if tag == 'learning_rate'
    ] == [2, 4]


def test_train_needs_a_directory_of_its_own(tmp_path):
    (tmp_path / 'model.ckpt-1').write_text('')
    with pytest.raises(
        UserError,
        match='^%s is not empty, and this program cannot resume a run: give another' % tmp_path,
    ):
        classic.train(Job(dataset.read(''), 300), str(tmp_path))
