"""`tensorflow` for programs of version 1: compat.v1, the names before 1.0, and tf.contrib.

Only missing names are added. Arguments in the old order are accepted only if the present order is
impossible.
"""

import contextlib
import difflib
import functools
import importlib.util
import logging
import os
import re
import sys
import threading
import time
import types
import warnings
import weakref

from absl import app, flags
import tensorflow as tensorflow_2
import tensorflow.compat.v1 as tf
from tensorflow.python import client, pywrap_tensorflow
from tensorflow.python.framework import graph_util

from cifar10 import errors, placement
from cifar10.tutorial import contrib

# Error message of a queue thread if its session was closed between two steps.
_CLOSED = 'Session has been closed'
_OLD_ARGUMENTS = {
    'concat_dim': 'axis',
    'split_dim': 'axis',
    'num_split': 'num_or_size_splits',
}
_OLD_LOSS = ['logits', 'labels', 'name']
_sessions = weakref.WeakSet()
_OLD_NAMES = {  # by module; source: RELEASE.md of TensorFlow 1.0
    tf: {
        'mul': tf.multiply,
        'sub': tf.subtract,
        'neg': tf.negative,
        'pack': tf.stack,
        'unpack': tf.unstack,
        'select': tf.where,
        'concat_v2': tf.concat,
        'inv': tf.reciprocal,
        'batch_matmul': tf.matmul,
        'listdiff': tf.setdiff1d,
        'complex_abs': tf.abs,
        'pywrap_tensorflow': pywrap_tensorflow,
        **contrib.SUMMARIES,
    },
    time: {'clock': time.perf_counter},  # removed in Python 3.8
    tf.train: {'SummaryWriter': tf.summary.FileWriter},
    tf.image: {'per_image_whitening': tf.image.per_image_standardization},
    # Private modules that programs import.
    client: {'graph_util': graph_util},
    pywrap_tensorflow: {'NewCheckpointReader': tf.train.NewCheckpointReader},
    graph_util: vars(tf.graph_util),
}


def install():
    """Replace the module `tensorflow` by version 1, for this process."""
    _quieten()
    if importlib.util.find_spec('tf_keras'):
        os.environ.setdefault('TF_USE_LEGACY_KERAS', '1')  # for tf.layers and tf.nn.rnn_cell
    tf.disable_v2_behavior()
    for module, names in _OLD_NAMES.items():
        for name, value in names.items():
            if not hasattr(module, name):
                setattr(module, name, value)
    sys.modules.setdefault('tensorflow.python.client.graph_util', graph_util)
    _accept_old_orders()
    for owner, name in [
        (tf.train.ExponentialMovingAverage, 'apply'),
        (tf.train.Optimizer, 'apply_gradients'),
    ]:
        setattr(owner, name, _with_new_variables(getattr(owner, name)))
    _follow_sessions()
    _let_flags_be_set()
    _warn_of_unknown_flags()
    module = _module()
    sys.modules['tensorflow'] = module
    # TensorFlow 1.15 has tf.contrib.
    tf.contrib = tensorflow_2.contrib if hasattr(tensorflow_2, 'contrib') else contrib.install()


def is_installed():
    """Return True after `install`."""
    return sys.modules['tensorflow'] is not tensorflow_2


def _quieten():
    """Suppress deprecation warnings, repeated messages, and tracebacks of closed sessions."""
    # This call creates TensorFlow's handler. Without it, messages go to the handler of absl.
    tf.logging.get_verbosity()
    logger = logging.getLogger('tensorflow')
    logger.propagate = False
    logger.addFilter(
        lambda record: (
            not re.search('is deprecated|non-resource variables|' + _CLOSED, record.getMessage())
        )
    )
    warnings.filterwarnings('ignore', '.* is deprecated')
    closed = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    tf.train.QueueRunner.__init__ = functools.partialmethod(
        tf.train.QueueRunner.__init__, queue_closed_exception_types=closed
    )
    show = getattr(threading, 'excepthook', None)  # new in Python 3.8
    threading.excepthook = lambda error: (
        None if re.search(_CLOSED, str(error.exc_value)) else show(error)
    )


def _module():
    """Return the module `tensorflow`: compat.v1, and the submodules of the installed package."""
    module = types.ModuleType('tensorflow', tf.__doc__)
    module.__path__, module.__file__ = tensorflow_2.__path__, tensorflow_2.__file__
    module.__version__ = tf.__version__
    module.compat = tensorflow_2.compat

    def get(name):
        if name == 'keras':  # Keras imports tensorflow and needs version 2.
            sys.modules['tensorflow'] = tensorflow_2
            try:
                if not hasattr(tf.keras.layers and tf.keras, '__version__'):  # only Keras 3 has it
                    tf.keras.__version__ = sys.modules['tf_keras'].__version__
                return tf.keras
            finally:
                sys.modules['tensorflow'] = module
        if name.startswith('__') or not hasattr(tf, name):
            raise AttributeError(f"module 'tensorflow' has no attribute {name!r}")
        return getattr(tf, name)

    module.__getattr__ = get  # PEP 562
    module.__dir__ = lambda: sorted(set(dir(tf)) | set(vars(module)))
    return module


def _accept_old_orders():
    """Accept argument names and orders of versions before 1.0."""
    for owner, name, old_order, first in [
        (tf, 'concat', ['axis', 'values', 'name'], int),
        (tf, 'split', ['axis', 'num_or_size_splits', 'value', 'name'], int),
        # Since 1.0, these losses need named arguments.
        (tf.nn, 'softmax_cross_entropy_with_logits', _OLD_LOSS, object),
        (tf.nn, 'sparse_softmax_cross_entropy_with_logits', _OLD_LOSS, object),
        (tf.nn, 'sigmoid_cross_entropy_with_logits', _OLD_LOSS, object),
    ]:
        setattr(owner, name, _in_either_order(getattr(owner, name), old_order, first))
    resize = tf.image.resize_images

    def resize_either_way(images, size, *rest, **named):
        if isinstance(size, int):
            size, rest = [size, rest[0]], rest[1:]
        return resize(images, size, *rest, **named)

    tf.image.resize_images = resize_either_way
    make_sync = tf.train.SyncReplicasOptimizer.__init__

    def make_sync_either_way(self, *positional, replica_id=None, **named):
        make_sync(self, *positional, **named)
        # Create the op now, because programs request it after the graph is finalized.
        clean_up_op = tf.no_op(name='clean_up')
        self.get_clean_up_op = lambda: clean_up_op

    tf.train.SyncReplicasOptimizer.__init__ = make_sync_either_way


def _in_either_order(function, old_order, first):
    """Return a function that also accepts the old names and order of arguments.

    In the old order, the first argument has the type `first`.
    """

    def call(*positional, **named):
        named = {_OLD_ARGUMENTS.get(name, name): value for name, value in named.items()}
        if positional and isinstance(positional[0], first):
            return function(**dict(zip(old_order, positional), **named))
        return function(*positional, **named)

    return call


def _with_new_variables(method):
    """Return a method that may create variables after `reuse_variables`, as before 1.0."""

    def call(*positional, **named):
        scope = tf.get_variable_scope()
        if not scope.reuse:
            return method(*positional, **named)
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            return method(*positional, **named)

    return call


def _let_flags_be_set():
    """Accept assignments to undefined flags, and _parse_flags, as TensorFlow did up to 1.4."""
    wrapper = type(tf.app.flags.FLAGS)
    set_flag = wrapper.__setattr__

    def define_and_set(self, name, value):
        if name not in self:
            similar = difflib.get_close_matches(name, self, 1, 0.8)
            if similar:
                errors.warn(f'FLAGS.{name} is a new flag; did you mean FLAGS.{similar[0]}?')
            tf.app.flags.DEFINE_string(name, None, '')
        set_flag(self, name, value)

    wrapper.__setattr__ = define_and_set
    flags.FlagValues._parse_flags = lambda self, args=None: (
        self.is_parsed() or self(sys.argv, known_only=True)
    )


def _warn_of_unknown_flags():
    """Warn once about each flag that the program's text does not contain.

    As in version 1, tf.app.run ignores unknown flags.
    """
    parse, warned = flags.FlagValues.__call__, set()

    def parse_and_warn(self, argv, known_only=False):
        rest = parse(self, argv, known_only)
        path = getattr(sys.modules['__main__'], '__file__', None)
        if self is flags.FLAGS and known_only and path:  # A notebook has no path.
            with open(path, encoding='utf-8', errors='replace') as program:
                words = set(re.findall(r'[\w-]+', program.read()))
            given = set(re.findall(r'(?m)^--?([a-zA-Z][\w-]*)', '\n'.join(rest[1:])))
            for flag in sorted(given - words - warned):
                similar = difflib.get_close_matches(flag.replace('-', '_'), self, 1)
                hint = f'; did you mean --{similar[0]}?' if similar else ''
                errors.warn(f'tf.app.run ignores --{flag}: the program defines no such flag{hint}')
            warned.update(given)
        return rest

    flags.FlagValues.__call__ = parse_and_warn


def adapt_to_notebook(is_kernel=False):
    """Let a second definition of a flag replace the first one, and let app.run return.

    In a kernel, which has no command line, flags count as parsed, and an exit status of app.run
    becomes a UserError.
    """
    set_flag = flags.FlagValues.__setitem__

    def replace(self, name, flag):
        if name in self and self[name] is not flag:
            delattr(self, name)
        flag.allow_override = True  # for the short name
        set_flag(self, name, flag)

    flags.FlagValues.__setitem__ = replace
    for module in app, tf.app:
        module.run = _return_from(module.run, is_kernel)
    if is_kernel:
        flags.FLAGS.mark_as_parsed()


def _return_from(run, is_kernel):
    """Return app.run without SystemExit after success."""

    @functools.wraps(run)
    def call(*positional, **named):
        try:
            run(*positional, **named)
        except SystemExit as error:
            if error.code and not is_kernel:
                raise
            if error.code:
                raise errors.UserError(
                    error.code
                    if isinstance(error.code, str)
                    else f'The program ended with exit status {error.code}'
                )

    return call


def _follow_sessions():
    """Record every session; without a GPU, enable soft placement on the CPU, and say so."""
    has_gpu = bool(tf.config.experimental.list_physical_devices('GPU'))
    base = tf.Session.__mro__[1]
    init = base.__init__

    def init_and_remember(self, target='', graph=None, config=None):
        if not has_gpu:
            config = config or tf.ConfigProto()
            config.allow_soft_placement = True
        init(self, target, graph, config)
        _sessions.add(self)

    base.__init__ = init_and_remember
    if not has_gpu:
        base.run = _with_notice_of_gpus(base.run)


def _with_notice_of_gpus(run):
    """Return a Session.run that prints once that operations on a GPU run on the CPU."""
    checked = weakref.WeakKeyDictionary()  # from graphs to versions
    is_checking = True

    def call(self, *positional, **named):
        nonlocal is_checking
        result = run(self, *positional, **named)
        if is_checking and checked.get(self.graph) != self.graph.version:
            checked[self.graph] = self.graph.version
            operations = self.graph.get_operations()
            device = next((op.device for op in operations if ':GPU:' in op.device), None)
            with contextlib.suppress(tf.errors.OpError, RuntimeError):  # The session was closed.
                # Another task of a cluster may have a GPU.
                if device and all(found.device_type != 'GPU' for found in self.list_devices()):
                    is_checking = False
                    errors.warn(
                        f'No GPU found: the operations on {device} run on the CPU ({placement.GPU_REMEDY})'
                    )
        return result

    return call


def close_sessions():
    """Close all sessions and join the queue threads, which could abort Python at exit."""
    for session in list(_sessions):
        session.close()
    for thread in threading.enumerate():
        # A close_on_stop thread may never end.
        if thread.name.startswith('QueueRunnerThread') and not thread.name.endswith(
            'close_on_stop'
        ):
            thread.join(timeout=10)
