"""The modules of tf.contrib for TensorFlow 2: names of TensorFlow, this package and tf_slim."""

import importlib
import importlib.util
import sys
import types

from tensorboard.plugins import projector
import tensorflow.compat.v1 as tf

from tf1_runner import (
    before_1_0,
    contrib_batch_norm,
    contrib_hparams,
    contrib_slim,
    initializers,
    layers,
    prefetch_queue,
    sequence_loss,
)
from tf1_runner.private_api import rnn_cell


def _names(module, names):
    """Return a dict of those names in a string that the module has.

    `old=new` stands for a name that has changed.
    """
    pairs = [name.partition('=') for name in names.split()]
    return {
        old: getattr(module, new or old) for old, _, new in pairs if hasattr(module, new or old)
    }


_LAYERS = {
    **_names(
        layers,
        'avg_pool2d conv2d convolution2d=conv2d dropout flatten fully_connected max_pool2d softmax',
    ),
    **_names(
        initializers,
        'l1_regularizer l2_regularizer variance_scaling_initializer xavier_initializer '
        'xavier_initializer_conv2d=xavier_initializer',
    ),
    'batch_norm': contrib_batch_norm.batch_norm,
}
MODULES = {
    'contrib': {},
    'contrib.data': {
        'FixedLengthRecordDataset': tf.data.FixedLengthRecordDataset,
        **_names(tf.data.experimental, 'map_and_batch shuffle_and_repeat'),
    },
    'contrib.deprecated': before_1_0.SUMMARIES,
    'contrib.framework': _names(tf.train, 'create_global_step get_or_create_global_step'),
    'contrib.keras': {},
    'contrib.layers': _LAYERS,
    'contrib.layers.python': {},
    'contrib.layers.python.layers': _LAYERS,
    'contrib.layers.python.layers.initializers': _LAYERS,
    'contrib.layers.python.layers.regularizers': _LAYERS,
    'contrib.learn': {'ModeKeys': types.SimpleNamespace(TRAIN='train', EVAL='eval', INFER='infer')},
    'contrib.legacy_seq2seq': _names(sequence_loss, 'sequence_loss_by_example'),
    'contrib.rnn': {
        **_names(rnn_cell, 'BasicLSTMCell DropoutWrapper MultiRNNCell'),
        **_names(tf.nn, 'static_bidirectional_rnn'),
    },
    'contrib.seq2seq': _names(sequence_loss, 'sequence_loss'),
    'contrib.slim': {},
    'contrib.slim.prefetch_queue': _names(prefetch_queue, 'prefetch_queue'),
    'contrib.tensorboard': {},
    'contrib.tensorboard.plugins': {'projector': projector},
    'contrib.training': _names(contrib_hparams, 'HParams=ContribHParams'),
    'contrib.training.python': {},
    'contrib.training.python.training': {},
    'contrib.training.python.training.hparam': _names(contrib_hparams, 'HParams=ContribHParams'),
}


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
    paths = {*MODULES, *(f'contrib.{path}' for path in contrib_slim.PACKAGES)}
    for path in sorted(paths):
        module = sys.modules['tensorflow.' + path] = _Module('tensorflow.' + path)
        vars(module).update(MODULES.get(path, {}))
        owner, _, name = path.rpartition('.')
        if owner:
            setattr(sys.modules['tensorflow.' + owner], name, module)
    if importlib.util.find_spec('tf_slim'):
        contrib_slim.install()
    return sys.modules['tensorflow.contrib']
