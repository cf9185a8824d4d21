"""What programs on CIFAR-10 used of tf.contrib, which TensorFlow 2 no longer has."""

import importlib.util
import sys
import types

import tensorflow.compat.v1 as tf

from cifar10.input import prefetch_queue
from cifar10.tutorial import contrib_layers


def _prefetch_queue(tensors, capacity=8, num_threads=1, name=None):
    """Returns slim's queue of batches [images, labels], which the program's queue runners fill."""
    images, labels = tensors
    return prefetch_queue(images, labels, capacity, num_threads)


_NAMES = {  # under tf.contrib
    'deprecated.histogram_summary': tf.summary.histogram,
    'deprecated.image_summary': lambda tag, tensor, max_images=3: tf.summary.image(
        tag, tensor, max_images
    ),
    'deprecated.merge_summary': tf.summary.merge,
    'deprecated.scalar_summary': tf.summary.scalar,
    'framework.get_global_step': tf.train.get_global_step,
    'framework.get_or_create_global_step': tf.train.get_or_create_global_step,
    'layers.one_hot_encoding': lambda labels, num_classes: tf.one_hot(labels, num_classes),
    'layers.xavier_initializer_conv2d': contrib_layers.xavier_initializer,
    'layers.python.layers.batch_norm': contrib_layers.batch_norm,
    'slim.prefetch_queue.prefetch_queue': _prefetch_queue,
}
for _function in (
    contrib_layers.avg_pool2d,
    contrib_layers.batch_norm,
    contrib_layers.conv2d,
    contrib_layers.flatten,
    contrib_layers.fully_connected,
    contrib_layers.l1_regularizer,
    contrib_layers.l2_regularizer,
    contrib_layers.max_pool2d,
    contrib_layers.variance_scaling_initializer,
    contrib_layers.xavier_initializer,
):
    _NAMES['layers.' + _function.__name__] = _function

# of modules of tf.contrib
_SUCCESSORS = {'slim': 'tf_slim', 'layers': 'tf_slim.layers', 'framework': 'tf_slim'}


class _Namespace(types.ModuleType):
    """tf.contrib or a module of it: the names above, and those of the package tf_slim if it is
    installed."""

    __path__ = []

    def __getattr__(self, name):
        successor = _SUCCESSORS.get(self.__name__.rpartition('.')[2])
        installed = bool(successor and importlib.util.find_spec('tf_slim'))
        if installed and hasattr(importlib.import_module(successor), name):
            return getattr(importlib.import_module(successor), name)
        raise AttributeError(
            '%s.%s is not in this TensorFlow%s'
            % (
                self.__name__.replace('tensorflow', 'tf'),
                name,
                ' (tf_slim may have it)' if successor and not installed else '',
            )
        )


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
