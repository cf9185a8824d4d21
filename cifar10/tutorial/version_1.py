"""`tensorflow` as programs for version 1 import it: compat.v1, the names of versions before 1.0, and tf.contrib.

What changed its meaning is not replaced: a name is added where none is left, and calls are read in their old order where today's
order cannot be meant.
"""
import functools
import importlib
import logging
import re
import sys
import types

import tensorflow as tensorflow_2
import tensorflow.compat.v1 as tf

from cifar10.tutorial import contrib

_BEFORE_1_0 = {  # TensorFlow's own table of these names: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf, RELEASE.md of 1.0
    'mul': tf.multiply, 'sub': tf.subtract, 'neg': tf.negative, 'pack': tf.stack, 'unpack': tf.unstack, 'select': tf.where,
    'concat_v2': tf.concat, 'inv': tf.reciprocal, 'batch_matmul': tf.matmul, 'listdiff': tf.setdiff1d, 'complex_abs': tf.abs,
    'scalar_summary': tf.summary.scalar, 'histogram_summary': tf.summary.histogram, 'image_summary': tf.summary.image,
    'audio_summary': tf.summary.audio, 'merge_summary': tf.summary.merge, 'merge_all_summaries': tf.summary.merge_all,
    'train.SummaryWriter': tf.summary.FileWriter, 'image.per_image_whitening': tf.image.per_image_standardization,
}


def install():
    """Makes `import tensorflow` give version 1 from now on, in this process."""
    _quieten_log()
    tf.disable_v2_behavior()
    for name, value in _BEFORE_1_0.items():
        owner, _, attribute = name.rpartition('.')
        owner = getattr(tf, owner) if owner else tf
        if not hasattr(owner, attribute):
            setattr(owner, attribute, value)
    _read_old_order()
    _share_variables_with_averages()
    if not tf.config.experimental.list_physical_devices('GPU'):
        _fall_back_to_cpu()
    module = _module()
    sys.modules['tensorflow'] = module
    if not hasattr(tensorflow_2, 'contrib'):  # TensorFlow 1.15 has its own
        module.contrib = contrib.install()


def _quieten_log():
    """Programs for version 1 need not be told, line by line, that there is a version 2; and each message once."""
    tf.logging.get_verbosity()  # makes TensorFlow's handler, without which messages would go to that of absl
    logger = logging.getLogger('tensorflow')
    logger.propagate = False
    logger.addFilter(lambda record: not re.search('is deprecated|non-resource variables', record.getMessage()))


def _module():
    """The module `tensorflow`: what compat.v1 has, and the submodules of the installed package."""
    module = types.ModuleType('tensorflow', tf.__doc__)
    module.__path__, module.__file__ = tensorflow_2.__path__, tensorflow_2.__file__
    module.__version__ = tf.__version__
    module.compat = tensorflow_2.compat

    def get(name):
        if name == 'keras':  # it imports tensorflow itself, and needs version 2
            sys.modules['tensorflow'] = tensorflow_2
            try:
                return importlib.import_module('keras') and tf.keras
            finally:
                sys.modules['tensorflow'] = module
        if name.startswith('__') or not hasattr(tf, name):
            raise AttributeError("module 'tensorflow' has no attribute %r" % name)
        return getattr(tf, name)
    module.__getattr__ = get  # PEP 562
    module.__dir__ = lambda: sorted(set(dir(tf)) | set(vars(module)))
    return module


def _read_old_order():
    """Reads calls in the order of arguments that versions before 1.0 had."""
    concat, split = tf.concat, tf.split

    @functools.wraps(concat)
    def concat_either_way(values, axis, *rest, **named):
        return concat(*((axis, values) if isinstance(values, int) else (values, axis)) + rest, **named)

    @functools.wraps(split)
    def split_either_way(value, num_or_size_splits, axis=0, *rest, **named):
        if isinstance(value, int):
            value, axis = axis, value
        return split(value, num_or_size_splits, axis, *rest, **named)
    tf.concat, tf.split = concat_either_way, split_either_way
    for name in ('softmax_cross_entropy_with_logits', 'sparse_softmax_cross_entropy_with_logits', 'sigmoid_cross_entropy_with_logits'):
        setattr(tf.nn, name, _with_positions(getattr(tf.nn, name), ['logits', 'labels', 'name']))


def _with_positions(function, names):
    """Since 1.0 the arguments of the cross entropies must be named."""
    @functools.wraps(function)
    def call(*positional, **named):
        return function(**dict(zip(names, positional), **named))
    return call


def _share_variables_with_averages():
    """Moving averages get their variables where the program reuses its own: before 1.0 `reuse_variables` did not forbid it."""
    apply = tf.train.ExponentialMovingAverage.apply

    @functools.wraps(apply)
    def apply_with_reuse(self, var_list=None):
        if not tf.get_variable_scope().reuse:
            return apply(self, var_list)
        with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
            return apply(self, var_list)
    tf.train.ExponentialMovingAverage.apply = apply_with_reuse


def _fall_back_to_cpu():
    """Makes every session place on the CPU what a program places on a GPU."""
    base = tf.Session.__mro__[1]
    init = base.__init__

    @functools.wraps(init)
    def init_with_soft_placement(self, target='', graph=None, config=None):
        soft = tf.ConfigProto()
        if config is not None:
            soft.CopyFrom(config)
        soft.allow_soft_placement = True
        init(self, target, graph, soft)
    base.__init__ = init_with_soft_placement
