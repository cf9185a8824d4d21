"""Checkpoints of the network with random weights, and their evaluation by NumPy."""

import functools
import os

import numpy as np
import tensorflow.compat.v1 as tf

import cifar10
from cifar10.data import dataset
from cifar10.system import machine
from tests.helpers import oracle


def save(directory, step, averages=True, global_step=True, seed=0):
    """Save a checkpoint; return its path, and the values to evaluate as a dict by variable name.

    The raw weights differ from the moving averages, so that a test can tell them apart.

    Args:
      averages: True adds moving averages.
      global_step: True adds a global step.
    """
    rng = np.random.RandomState(seed)
    session, saver, variables = _network(averages, global_step)
    used, initial = {}, {}
    for name, variable in variables.items():
        value = step
        if name != 'global_step':
            value = rng.normal(0, 0.1, variable.shape.as_list()).astype(np.float32)
            if name.endswith('/ExponentialMovingAverage') == averages:
                used[name.replace('/ExponentialMovingAverage', '')] = value
        initial[variable.initializer.inputs[1]] = value
    session.run([variable.initializer for variable in variables.values()], initial)
    saver.set_last_checkpoints_with_time([])  # those of other tests
    with session.graph.as_default():
        return saver.save(session, os.path.join(str(directory), 'model.ckpt'), step), used


def write(path, values):
    """Write a checkpoint, a dict from variable name to array."""
    with tf.Graph().as_default(), tf.Session() as session:
        save_op = tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=list(values),
            shape_and_slices=[''] * len(values),
            tensors=list(map(tf.constant, values.values())),
        )
        session.run(save_op)


@functools.lru_cache(maxsize=None)
def _network(averages, global_step):
    """Return a session, its saver, and a dict of its variables; built once, to save time."""
    with tf.Graph().as_default():
        cifar10.inference(tf.zeros([1, 24, 24, 3]))
        if averages:
            tf.train.ExponentialMovingAverage(0.9).apply(tf.trainable_variables())
        if global_step:
            tf.train.get_or_create_global_step()
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        # Without a GPU: a session would allocate all of its memory.
        session = tf.Session(config=machine.session_config(['/cpu:0']))
        return session, tf.train.Saver(), variables


def expected_result(data_dir, variables, num_examples=None, paths=None):
    """Return the number of correct classifications and the mean cross entropy, by NumPy."""
    labels, images = oracle.read_records(paths or dataset.read(data_dir).test.paths)
    labels, images = labels[:num_examples], images[:num_examples]
    logits = oracle.logits(oracle.evaluation_images(images), variables)
    return (logits.argmax(1) == labels).sum(), oracle.cross_entropies(logits, labels).mean()
