"""The version of TensorFlow that a program sees: that of its names, 1.15.5.

Packages check the version, too. They and this package see the one that is installed.
"""

import sys

import tensorflow.compat.v1 as tf

from tf1_runner.error_hints import is_package

_PROGRAM_VERSION = '1.15.5'
# Modules whose functions read the version for a program: those of the wrappers of modules.
_WRAPPERS = ('tensorflow.python.util.module_wrapper', 'tf1_runner.tensorflow_1')


def install():
    """Let `tensorflow.compat.v1` find the version by the code that reads it."""
    for module, names in [(tf, ['__version__', 'VERSION']), (tf.version, ['VERSION'])]:
        versions = {name: getattr(module, name) for name in names}
        # TensorFlow 2.13 has no `__all__`.
        exported = [name for name in dir(module) if not name.startswith('_')]
        for name in names:
            delattr(module, name)
        module.__getattr__ = _getter(module.__name__, versions)
        module.__all__ = exported  # as before, for `import *`


def _getter(module_name, installed):
    """Return the function `__getattr__` (PEP 562) of a module, which Python calls for other names.

    Args:
      module_name: for messages.
      installed: dict from the names of a version to the installed version.
    """

    def get(name):
        if name not in installed:
            raise AttributeError(f'module {module_name!r} has no attribute {name!r}')
        frame = sys._getframe(1)
        while frame.f_globals.get('__name__') in _WRAPPERS:
            frame = frame.f_back
        return installed[name] if is_package(frame.f_code.co_filename) else _PROGRAM_VERSION

    return get
