"""The part of tf.contrib that CIFAR-10 programs use, for TensorFlow 2."""

import importlib
import importlib.util
import sys
import types

import tensorflow.compat.v1 as tf

from cifar10.tf1 import (
    batch_normalization,
    contrib_hparams,
    contrib_slim,
    layers,
    prefetch_queue,
    sequence_loss,
)
from cifar10.tf1.private_api import nest, rnn_cell

SUMMARIES = {  # names before 1.0
    'scalar_summary': lambda tags, values, collections=None, name=None: tf.summary.scalar(
        tags, values, collections
    ),
    'histogram_summary': lambda tag, values, collections=None, name=None: tf.summary.histogram(
        tag, values, collections
    ),
    'image_summary': lambda tag, tensor, max_images=3, collections=None, name=None: (
        tf.summary.image(tag, tensor, max_images, collections)
    ),
    'audio_summary': tf.summary.audio,
    'merge_summary': tf.summary.merge,
    'merge_all_summaries': tf.summary.merge_all,
}
_LAYERS = {
    'avg_pool2d': layers.avg_pool2d,
    'batch_norm': batch_normalization.batch_norm,
    'conv2d': layers.conv2d,
    'convolution2d': layers.conv2d,
    'dropout': layers.dropout,
    'flatten': layers.flatten,
    'fully_connected': layers.fully_connected,
    'l1_regularizer': layers.l1_regularizer,
    'l2_regularizer': layers.l2_regularizer,
    'max_pool2d': layers.max_pool2d,
    'one_hot_encoding': layers.one_hot_encoding,
    'softmax': layers.softmax,
    'variance_scaling_initializer': layers.variance_scaling_initializer,
    'xavier_initializer': layers.xavier_initializer,
    'xavier_initializer_conv2d': layers.xavier_initializer,
}
_HPARAMS = {
    'HParams': contrib_hparams.ContribHParams,
    'parse_values': contrib_hparams.parse_values,
}


class _ModeKeys:
    """Modes of a model."""

    TRAIN, EVAL, INFER = 'train', 'eval', 'infer'


def _batch_and_drop_remainder(batch_size):
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


_MODULES = {
    'contrib': {},
    'contrib.data': {
        'Dataset': tf.data.Dataset,
        'FixedLengthRecordDataset': tf.data.FixedLengthRecordDataset,
        'Iterator': tf.data.Iterator,
        'TFRecordDataset': tf.data.TFRecordDataset,
        'TextLineDataset': tf.data.TextLineDataset,
        'batch_and_drop_remainder': _batch_and_drop_remainder,
        # The batches stay on the CPU; TensorFlow copies them.
        'prefetch_to_device': lambda device, buffer_size=None: (
            lambda dataset: dataset.prefetch(buffer_size or 1)
        ),
        'map_and_batch': tf.data.experimental.map_and_batch,
        'shuffle_and_repeat': tf.data.experimental.shuffle_and_repeat,
    },
    'contrib.deprecated': SUMMARIES,
    'contrib.framework': {
        'TensorSpec': tf.TensorSpec,
        'argsort': tf.argsort,
        'assert_global_step': tf.train.assert_global_step,
        'assert_same_float_dtype': tf.debugging.assert_same_float_dtype,
        'assert_scalar': tf.debugging.assert_scalar,
        'convert_to_tensor_or_sparse_tensor': tf.convert_to_tensor_or_sparse_tensor,
        'create_global_step': tf.train.create_global_step,
        'get_global_step': tf.train.get_global_step,
        'get_or_create_global_step': tf.train.get_or_create_global_step,
        # tf.train has other names for the first argument of these four.
        'init_from_checkpoint': lambda checkpoint_dir, assignment_map: (
            tf.train.init_from_checkpoint(checkpoint_dir, assignment_map)
        ),
        'is_tensor': tf.is_tensor,
        'list_variables': lambda checkpoint_dir: tf.train.list_variables(checkpoint_dir),
        'load_checkpoint': lambda filepattern: tf.train.load_checkpoint(filepattern),
        'load_variable': lambda checkpoint_dir, name: tf.train.load_variable(checkpoint_dir, name),
        'nest': nest,
        'sort': tf.sort,
    },
    'contrib.keras': {},
    'contrib.layers': _LAYERS,
    'contrib.layers.python': {},
    'contrib.layers.python.layers': _LAYERS,
    'contrib.layers.python.layers.initializers': _LAYERS,
    'contrib.layers.python.layers.layers': _LAYERS,
    'contrib.layers.python.layers.regularizers': _LAYERS,
    'contrib.learn': {'ModeKeys': _ModeKeys},
    'contrib.legacy_seq2seq': {
        'sequence_loss': sequence_loss.legacy_sequence_loss,
        'sequence_loss_by_example': sequence_loss.sequence_loss_by_example,
    },
    'contrib.rnn': {
        **{name: value for name, value in vars(rnn_cell).items() if name[0] != '_'},
        'static_bidirectional_rnn': tf.nn.static_bidirectional_rnn,
        'static_rnn': tf.nn.static_rnn,
    },
    'contrib.losses': {
        'add_loss': tf.losses.add_loss,
        'get_losses': tf.losses.get_losses,
        'get_regularization_losses': tf.losses.get_regularization_losses,
        'get_total_loss': tf.losses.get_total_loss,
    },
    'contrib.metrics': {
        'confusion_matrix': tf.confusion_matrix,
        'set_difference': tf.sets.difference,
        'set_intersection': tf.sets.intersection,
        'set_size': tf.sets.size,
        'set_union': tf.sets.union,
    },
    'contrib.seq2seq': {'sequence_loss': sequence_loss.sequence_loss},
    'contrib.training': _HPARAMS,
    'contrib.training.python': {},
    'contrib.training.python.training': {},
    'contrib.training.python.training.hparam': _HPARAMS,
    'contrib.slim': {},
    'contrib.slim.prefetch_queue': {'prefetch_queue': prefetch_queue.prefetch_queue},
}
_MODULES.update(
    {
        f'contrib.{path}': _MODULES[f'contrib.{same}']
        for path, same in [
            ('framework.python.framework', 'framework'),
            ('framework.python.framework.checkpoint_utils', 'framework'),
            ('framework.python.ops', 'framework'),
            ('framework.python.ops.variables', 'framework'),
            ('losses.python.losses', 'losses'),
            ('slim.losses', 'losses'),
            ('slim.metrics', 'metrics'),
            ('slim.python.slim.data.prefetch_queue', 'slim.prefetch_queue'),
        ]
    }
)


class _Module(types.ModuleType):
    """Module of tf.contrib."""

    __path__ = []

    def __getattr__(self, name):
        if self.__name__ == 'tensorflow.contrib.keras':
            return getattr(importlib.import_module('tensorflow').keras, name)
        raise AttributeError(
            f'{self.__name__.replace("tensorflow", "tf")}.{name} is not in this TensorFlow'
        )


def install():
    """Create the modules `tensorflow.contrib...`; return the top one."""
    for path in sorted({*_MODULES, *(f'contrib.{path}' for path in contrib_slim.PACKAGES)}):
        module = sys.modules['tensorflow.' + path] = _Module('tensorflow.' + path)
        vars(module).update(_MODULES.get(path, {}))
        owner, _, name = path.rpartition('.')
        if owner:
            setattr(sys.modules['tensorflow.' + owner], name, module)
    if importlib.util.find_spec('tf_slim'):
        _use_slim()
    return sys.modules['tensorflow.contrib']


def _use_slim():
    """Use the functions of tf_slim, also for the layers, because its arg_scope applies to them.

    Its batch_norm is replaced, because it needs a class that TensorFlow 2 lacks.
    """
    batch_norm = importlib.import_module('tf_slim').add_arg_scope(batch_normalization.batch_norm)
    for name in ('tf_slim', 'tf_slim.layers', 'tf_slim.layers.layers'):
        sys.modules[name].batch_norm = batch_norm
    contrib_slim.install()
