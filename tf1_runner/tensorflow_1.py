"""`tensorflow` for programs of version 1: compat.v1, the names before 1.0, and tf.contrib.

Only missing names are added. Arguments in the old order are accepted only if the present order is
impossible.
"""

import collections
import collections.abc
import importlib.util
import inspect
import linecache
import logging
import os
import re
import sys
import threading
import types
import warnings

import numpy as np
import tensorflow as tensorflow_2
import tensorflow.compat.v1 as tf

from cifar10 import errors
from tf1_runner import (
    batch_normalization,
    before_1_0,
    contrib_names,
    downloads,
    program_flags,
    queue_errors,
    sessions,
    versions,
)
from tf1_runner.private_api import (
    InputSpec,
    array_ops,
    control_flow_ops,
    graph_util,
    layers as tf_layers,
    nest,
    normalization,
    ops,
    pywrap_tensorflow,
    rnn_cell,
    variable_scope,
)

_NOT_SHOWN = (  # of 'thread: message'; queue_errors shows the errors of threads
    'is deprecated|non-resource variables|Exception in QueueRunner|'
    '^(?!MainThread).*: Error reported to Coordinator|'
) + queue_errors.CLOSED
_ArgSpec = collections.namedtuple('ArgSpec', 'args varargs keywords defaults')
_OLD_NAMES = {  # by owner
    tf: {'pywrap_tensorflow': pywrap_tensorflow},
    # Removed in Python 3.9 to 3.11.
    inspect: {'getargspec': lambda function: _ArgSpec(*inspect.getfullargspec(function)[:4])},
    collections: {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    threading.Thread: {'isAlive': threading.Thread.is_alive},
    np: {'float': float, 'int': int},  # removed in NumPy 1.24
    np.lib: {'pad': np.pad},
    # Private modules that programs and packages for TensorFlow 1 import.
    pywrap_tensorflow: {'NewCheckpointReader': tf.train.NewCheckpointReader},
    graph_util: vars(tf.graph_util),
    ops: {
        'IndexedSlices': tf.IndexedSlices,
        'Tensor': tf.Tensor,
        'register_tensor_conversion_function': tf.register_tensor_conversion_function,
    },
    nest: {'is_sequence': tf.nest.is_nested},
    array_ops: {'stack': tf.stack, 'unstack': tf.unstack},
    control_flow_ops: {'cond': tf.cond, 'while_loop': tf.while_loop},
    variable_scope: {'variable': tf.Variable},
}


def install():
    """Replace the module `tensorflow` by version 1, for this process."""
    _quieten()
    if importlib.util.find_spec('tf_keras'):
        os.environ.setdefault('TF_USE_LEGACY_KERAS', '1')  # for tf.keras in a graph
    tf.disable_v2_behavior()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # NumPy warns of some names.
        for module, names in _OLD_NAMES.items():
            for name, value in names.items():
                if not hasattr(module, name):
                    setattr(module, name, value)
    if np.lib.NumpyVersion(np.__version__) >= '2.0.0':
        np.set_printoptions(legacy='1.25')  # 2.0 instead of np.float32(2.0)
    lazy_tensor = getattr(variable_scope, '_LazyEvalTensor', None)
    if lazy_tensor and not hasattr(lazy_tensor, 'ref'):
        # TensorFlow 2 needs it to average the regularization losses.
        lazy_tensor.ref = lambda self: self._master_tensor.ref()
    before_1_0.install()
    for owner, name in [
        (tf.train.ExponentialMovingAverage, 'apply'),
        (tf.train.Optimizer, 'apply_gradients'),
    ]:
        setattr(owner, name, _with_new_variables(getattr(owner, name)))
    _accept_truth_of_gradients()
    sessions.install()
    program_flags.install()
    downloads.install()
    module = _module()
    sys.modules['tensorflow'] = module
    if hasattr(tensorflow_2, 'contrib'):  # TensorFlow 1.15
        tf.contrib = tensorflow_2.contrib
    else:
        tf.contrib = contrib_names.install()
        versions.install()
        _show_layers()
    _alias_submodules(module)


def is_installed():
    """Return True after `install`."""
    return sys.modules['tensorflow'] is not tensorflow_2


def _quieten():
    """Suppress deprecation warnings, repeated messages, and tracebacks of closed sessions."""
    # This call creates TensorFlow's handler. Without it, messages go to the handler of absl.
    tf.logging.get_verbosity()
    logger = logging.getLogger('tensorflow')
    logger.propagate = False

    def is_shown(record):
        if any(type(handler).__module__ != 'absl.logging' for handler in logging.root.handlers):
            # The program has configured logging: its handlers get the message, as in version 1.
            logger.propagate = True
            logger.handlers.clear()
        return not re.search(_NOT_SHOWN, f'{record.threadName}: {record.getMessage()}')

    logger.addFilter(is_shown)
    warnings.filterwarnings('ignore', '`(layer|tf)[.].* is deprecated')
    show = getattr(threading, 'excepthook', None)  # new in Python 3.8
    threading.excepthook = lambda error: (
        None if queue_errors.CLOSED in str(error.exc_value) else show(error)
    )


def _module():
    """Return the module `tensorflow`: compat.v1, and the submodules of the installed package."""
    module = types.ModuleType('tensorflow', tf.__doc__)
    module.__path__, module.__file__ = tensorflow_2.__path__, tensorflow_2.__file__
    module.compat = tensorflow_2.compat

    def get(name):
        if name == 'keras':  # Keras imports tensorflow and needs version 2.
            sys.modules['tensorflow'] = tensorflow_2
            try:
                if not hasattr(tf.keras.layers and tf.keras, '__version__'):  # only Keras 3 has it
                    keras = sys.modules.get('tf_keras') or sys.modules['keras']
                    tf.keras.__version__ = keras.__version__
                return tf.keras
            finally:
                sys.modules['tensorflow'] = module
        if (name.startswith('__') and name != '__version__') or not hasattr(tf, name):
            raise AttributeError(f"module 'tensorflow' has no attribute {name!r}")
        return getattr(tf, name)

    module.__getattr__ = get  # PEP 562
    module.__all__ = [name for name in dir(tf) if name[0] != '_' and name != 'keras']
    module.__dir__ = lambda: sorted(set(dir(tf)) | set(vars(module)))
    return module


def _alias_submodules(module):
    """Let `from tensorflow.nn import relu` and `import tensorflow.nn` find the modules of `tf`.

    Python would look for them in the directory of version 2.
    """
    module.__all__.append('contrib')
    module.python = sys.modules['tensorflow.python']
    for name, value in vars(tf).items():
        if isinstance(value, types.ModuleType) and name[0] != '_' and name != 'keras':
            for package in ('tensorflow.', 'tensorflow.compat.v1.'):
                sys.modules.setdefault(package + name, value)


def _show_layers():
    """Show tf.layers and tf.nn.rnn_cell, which TensorFlow has, but hides if Keras is version 3."""
    tf.nn.rnn_cell = rnn_cell
    for package in ('tensorflow.', 'tensorflow.compat.v1.'):
        sys.modules[package + 'nn.rnn_cell'] = rnn_cell
    tf.layers = types.ModuleType('tensorflow.layers')
    vars(tf.layers).update(
        {name: value for name, value in vars(tf_layers).items() if name[0] != '_'}
    )
    tf.layers.InputSpec = InputSpec
    for name in ('BatchNormalization', 'batch_normalization'):
        for owner in (tf.layers, normalization):
            setattr(owner, name, getattr(batch_normalization, name))


def _accept_truth_of_gradients():
    """Let the condition `if grad:` mean `if grad is not None:`, as TensorFlow did up to 0.6.

    Any other use of a tensor's truth stays an error.
    """
    convert = tf.Tensor.__bool__
    condition = re.compile(r'\s*(el)?if (not )?(grad|grads|gradient|g)\s*:')

    def is_not_none(self):
        frame = sys._getframe(1)
        path, line = frame.f_code.co_filename, frame.f_lineno
        found = condition.match(linecache.getline(path, line))
        if not found or not self.dtype.is_floating:
            return convert(self)
        if (path, line) not in told:
            told.add((path, line))
            name = found.group(3)
            errors.warn(f'{path}:{line}: `if {name}:` means `if {name} is not None:`')
        return True

    told = set()
    tf.Tensor.__bool__ = is_not_none


def _with_new_variables(method):
    """Return a method that may create variables after `reuse_variables`, as before 1.0."""

    def call(*positional, **named):
        scope = tf.get_variable_scope()
        if scope.reuse is not True:  # False or AUTO_REUSE
            return method(*positional, **named)
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE, auxiliary_name_scope=False):
            return method(*positional, **named)

    return call
