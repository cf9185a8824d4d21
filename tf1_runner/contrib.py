"""The modules of tf.contrib for TensorFlow 2, with the names of contrib_names and of tf_slim."""

import importlib
import importlib.util
import sys
import types

from tf1_runner import contrib_names, contrib_slim


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
        contrib_slim.install()
    return sys.modules['tensorflow.contrib']
