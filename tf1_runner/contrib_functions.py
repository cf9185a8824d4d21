"""Small functions and classes of tf.contrib."""

import tensorflow.compat.v1 as tf

from tf1_runner.private_api import lookup_ops


class ModeKeys:
    """Modes of a model."""

    TRAIN, EVAL, INFER = 'train', 'eval', 'infer'


def batch_and_drop_remainder(batch_size):
    """Return a function of a data set, for its method `apply`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size, padded_shapes, padding_values=None):
    """Return a function of a data set, for its method `apply`."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, True)


def defun(func=None, input_signature=None, autograph=True):
    """Compile a function, or return what does so."""
    return tf.function(func, input_signature=input_signature, autograph=autograph)


def mirrored_strategy(devices=None, num_gpus=None, *, cross_device_ops=None):
    """Return a strategy; unlike that of TensorFlow 1, it divides the batches of a data set."""
    if num_gpus is not None:
        devices = [f'/gpu:{i}' for i in range(num_gpus)]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops)


def print_model_analysis(graph, run_meta=None, op_log=None, tfprof_cmd='scope', tfprof_options=0):
    """Print and return a profile; see tf.profiler.profile."""
    return tf.profiler.profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)


class HashTable(tf.lookup.StaticHashTable):
    """Table that is initialized once."""

    def __init__(self, initializer, default_value, *, name=None):
        """Set the initializer of keys and values, and the value of other keys."""
        super().__init__(initializer, default_value, name)

    @property
    def init(self):
        """The operation that initializes the table."""
        return self.initializer


def index_table_from_tensor(mapping, *positional, **named):
    """Return a table from the values of a tensor [size] to their indices; see lookup_ops."""
    return lookup_ops.index_table_from_tensor(mapping, *positional, **named)
