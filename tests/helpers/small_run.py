"""A training run on a graph of one variable whose every value is known."""
import glob
import os
import re

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, optimizer, training
from cifar10.runs import checkpoint, run_directory
from cifar10.hparams import CLASSIC

HPARAMS = CLASSIC._replace(initial_learning_rate=0.25, moving_average_decay=0.3, num_epochs_per_decay=3.0)


def events(directory):
    """All events of the directory's event files, in the order of the files."""
    paths = sorted(glob.glob(os.path.join(directory, 'events.*')), key=lambda path: path.split('tfevents.')[1])
    return [event for path in paths for event in tf.train.summary_iterator(path)]


def scalars(directory):
    """A list of (step, tag, value)."""
    return [(event.step, value.tag, value.simple_value) for event in events(directory) for value in event.summary.value]


def train(train_dir, data_dir, max_steps, fresh=False, poison=None, clean=None, after_step=None, hparams=HPARAMS,
          initial=None, **schedule):
    """Halves each variable in each step; with 100 examples an epoch and 10 a step, the rate decays every 30 steps.

    Args:
      max_steps: None trains as long as `hparams` say.
      poison: the step in which loss and gradient of the second tower become NaN.
      clean: 'loss' or 'gradient' if only the other shows it.
      after_step: called with the step after each update.
      initial: a dict from names to initial values; for None `weights` is (8, -4).
    """
    with run_directory.held(str(train_dir), fresh, hparams, 2, data_dir) as held, tf.Graph().as_default():
        variables = [tf.get_variable(name, initializer=np.array(value, np.float32))
                     for name, value in (initial or {'weights': (8, -4)}).items()]
        global_step = tf.train.get_or_create_global_step()
        rate = optimizer.learning_rate(global_step, 10, 100, hparams)
        loss = tf.add_n([tf.reduce_sum(tf.square(variable)) for variable in variables])
        poisoned = loss * tf.where(tf.equal(global_step, -1 if poison is None else poison - 1), np.nan, 1.0)
        opt = optimizer.create(rate, hparams)
        num_steps = optimizer.num_steps(10, 100, hparams)
        losses, tower_grads = [loss, poisoned], [opt.compute_gradients(loss), opt.compute_gradients(poisoned)]
        if clean == 'loss':
            losses = [loss, loss]
        if clean == 'gradient':
            tower_grads = tower_grads[:1]
        with tf.control_dependencies(losses):  # a loss that no gradient needs must not read the next step either
            train_op = optimizer.train(opt, multi_gpu.average_gradients(tower_grads), global_step, hparams, num_steps)
        if after_step:
            with tf.control_dependencies([train_op]):
                train_op = tf.py_func(after_step, [tf.identity(global_step)], [])
        summary_op = tf.summary.merge([tf.summary.scalar('loss', loss), tf.summary.scalar('rate', rate)])
        training.run(train_op, losses, tower_grads, rate, summary_op, tf.train.Saver(save_relative_paths=True), held,
                     training.Schedule(max_steps or num_steps, **schedule), 10, 100, tf.ConfigProto())


def numpy_run(steps):
    """The weights and their averages after so many steps, and the rate of the next one."""
    weights = average = np.array([8.0, -4.0])
    for step in range(1, steps + 1):
        weights = weights - 0.25 * 0.1 ** ((step - 1) * 10 // 300) * 2 * weights
        decay = min(0.3, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weights
    return weights, average, 0.25 * 0.1 ** (steps * 10 // 300)


def assert_saved(train_dir, step):
    saved = checkpoint.read(os.path.join(str(train_dir), 'model.ckpt-%d' % step))
    weights, average, _ = numpy_run(step)
    assert saved.step == saved.values['global_step'] == step
    np.testing.assert_allclose(saved.values['weights'], weights, rtol=1e-5)
    np.testing.assert_allclose(saved.values['weights/ExponentialMovingAverage'], average, rtol=1e-5)

LINE = re.compile(r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: step (\d+), loss = (\S+) \((\d+\.\d) examples/sec; (\d+\.\d{3}) sec/batch\)$', re.M)
