"""The modules of tf.contrib for TensorFlow 2, with the names of contrib_names and of tf_slim."""

import importlib
import importlib.util
import sys
import types

from cifar10.tf1 import batch_normalization, contrib_names, contrib_slim


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
    paths = {*contrib_names.MODULES, *(f'contrib.{path}' for path in contrib_slim.PACKAGES)}
    for path in sorted(paths):
        module = sys.modules['tensorflow.' + path] = _Module('tensorflow.' + path)
        vars(module).update(contrib_names.MODULES.get(path, {}))
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
