"""What programs on CIFAR-10 used of tf.contrib, which TensorFlow 2 no longer has."""
import sys
import types

import tensorflow.compat.v1 as tf

from cifar10.input import prefetch_queue


def _prefetch_queue(tensors, capacity=8, num_threads=1):
    """slim's: a queue of batches [images, labels], which the program's queue runners fill."""
    images, labels = tensors
    return prefetch_queue(images, labels, capacity, num_threads)


def _xavier_initializer(uniform=True, seed=None, dtype=tf.float32):
    return (tf.glorot_uniform_initializer if uniform else tf.glorot_normal_initializer)(seed, dtype)


def _l1_regularizer(scale):
    return lambda weights: scale * tf.reduce_sum(tf.abs(weights))


def _l2_regularizer(scale):
    return lambda weights: scale * tf.nn.l2_loss(weights)


def _flatten(inputs):
    features = 1
    for size in inputs.shape.as_list()[1:]:
        features *= size
    return tf.reshape(inputs, [-1, features])


_NAMES = {  # under tf.contrib
    'deprecated.histogram_summary': tf.summary.histogram,
    'deprecated.image_summary': tf.summary.image,
    'deprecated.scalar_summary': tf.summary.scalar,
    'framework.get_global_step': tf.train.get_global_step,
    'framework.get_or_create_global_step': tf.train.get_or_create_global_step,
    'layers.flatten': _flatten,
    'layers.l1_regularizer': _l1_regularizer,
    'layers.l2_regularizer': _l2_regularizer,
    'layers.one_hot_encoding': tf.one_hot,
    'layers.variance_scaling_initializer': lambda factor=2.0, mode='FAN_IN', uniform=False, seed=None, dtype=tf.float32:
        tf.variance_scaling_initializer(factor, mode.lower(), 'uniform' if uniform else 'truncated_normal', seed, dtype),
    'layers.xavier_initializer': _xavier_initializer,
    'layers.xavier_initializer_conv2d': _xavier_initializer,
    'slim.prefetch_queue.prefetch_queue': _prefetch_queue,
}


class _Namespace(types.ModuleType):
    """tf.contrib or a module of it; of every other name it says where its replacement is told."""
    __path__ = []

    def __getattr__(self, name):
        raise AttributeError('%s.%s is not in this TensorFlow' % (self.__name__.replace('tensorflow', 'tf'), name))


def install():
    """Makes the modules `tensorflow.contrib...`, and returns the first."""
    for path, value in _NAMES.items():
        name, owner = 'tensorflow', None
        for part in ['contrib'] + path.split('.')[:-1]:
            name += '.' + part
            module = sys.modules.setdefault(name, _Namespace(name))
            if owner:
                setattr(owner, part, module)
            owner = module
        setattr(owner, path.rpartition('.')[2], value)
    return sys.modules['tensorflow.contrib']
