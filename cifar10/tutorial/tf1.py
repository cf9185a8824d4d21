"""`tensorflow` as programs for version 1 import it: compat.v1, the names of versions before 1.0,
and tf.contrib.

What changed its meaning is not replaced: a name is added where none is left, and calls are read in
their old order where today's order cannot be meant.
"""

import argparse
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

from absl import flags
import tensorflow as tensorflow_2
import tensorflow.compat.v1 as tf
from tensorflow.python import client, pywrap_tensorflow
from tensorflow.python.framework import graph_util

from cifar10 import errors
from cifar10.tutorial import contrib

_PATIENCE_SECS = 10
# what a thread of a queue says that was between two of its steps
_CLOSED = 'Session has been closed'
_sessions = weakref.WeakSet()
_BEFORE_1_0 = {  # as RELEASE.md of TensorFlow 1.0 lists them
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
    'train.SummaryWriter': tf.summary.FileWriter,
    'image.per_image_whitening': tf.image.per_image_standardization,
}
# modules that programs import, private ones among them, and the names of version 1 that they lack
# today
_MOVED = {
    tf: {'pywrap_tensorflow': pywrap_tensorflow},
    client: {'graph_util': graph_util},
    pywrap_tensorflow: {'NewCheckpointReader': tf.train.NewCheckpointReader},
    graph_util: {
        name: getattr(tf.graph_util, name)
        for name in dir(tf.graph_util)
        if not name.startswith('_')
    },
}


def install():
    """Makes `import tensorflow` give version 1 from now on, in this process."""
    _quieten()
    if importlib.util.find_spec('tf_keras'):
        os.environ.setdefault('TF_USE_LEGACY_KERAS', '1')  # tf.layers and tf.nn.rnn_cell need it
    if not hasattr(time, 'clock'):
        # gone since Python 3.8; programs measure their steps with it
        time.clock = time.perf_counter
    tf.disable_v2_behavior()
    for name, value in _BEFORE_1_0.items():
        owner, _, attribute = name.rpartition('.')
        owner = getattr(tf, owner) if owner else tf
        if not hasattr(owner, attribute):
            setattr(owner, attribute, value)
    for module, names in _MOVED.items():
        vars(module).update(
            {name: value for name, value in names.items() if not hasattr(module, name)}
        )
    sys.modules.setdefault('tensorflow.python.client.graph_util', graph_util)
    _read_old_order()
    _let_averages_and_slots_be_made()
    _follow_sessions()
    _let_flags_be_set()
    _warn_of_unknown_flags()
    module = _module()
    sys.modules['tensorflow'] = module
    # 1.15 has it
    tf.contrib = tensorflow_2.contrib if hasattr(tensorflow_2, 'contrib') else contrib.install()


def _quieten():
    """Keeps back what only hides a program's own messages.

    That is: that there is a version 2, for each name; each line a second time; and a traceback for
    each thread of a queue, when the program closes its session.
    """
    # makes TensorFlow's handler, without which messages would go to that of absl
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
    show = getattr(threading, 'excepthook', None)  # since Python 3.8
    threading.excepthook = lambda error: (
        None if re.search(_CLOSED, str(error.exc_value)) else show(error)
    )


def _module():
    """Returns the module `tensorflow`: what compat.v1 has, and the submodules of the installed
    package."""
    module = types.ModuleType('tensorflow', tf.__doc__)
    module.__path__, module.__file__ = tensorflow_2.__path__, tensorflow_2.__file__
    module.__version__ = tf.__version__
    module.compat = tensorflow_2.compat

    def get(name):
        if name == 'keras':  # it imports tensorflow itself, and needs version 2
            sys.modules['tensorflow'] = tensorflow_2
            try:
                return tf.keras.layers and tf.keras
            finally:
                sys.modules['tensorflow'] = module
        if name.startswith('__') or not hasattr(tf, name):
            raise AttributeError("module 'tensorflow' has no attribute %r" % name)
        return getattr(tf, name)

    module.__getattr__ = get  # PEP 562
    module.__dir__ = lambda: sorted(set(dir(tf)) | set(vars(module)))
    return module


def _read_old_order():
    """Accepts the order of arguments, and the arguments, that versions before 1.0 had."""
    concat, split, resize = tf.concat, tf.split, tf.image.resize_images

    @functools.wraps(concat)
    def concat_either_way(*positional, **named):
        if positional and isinstance(positional[0], int) or 'concat_dim' in named:
            named.update(zip(['concat_dim', 'values', 'name'], positional))
            return concat(named['values'], named['concat_dim'], named.get('name', 'concat'))
        return concat(*positional, **named)

    @functools.wraps(split)
    def split_either_way(*positional, **named):
        if positional and isinstance(positional[0], int) or 'split_dim' in named:
            named.update(zip(['split_dim', 'num_split', 'value', 'name'], positional))
            return split(
                named['value'],
                named['num_split'],
                named['split_dim'],
                name=named.get('name', 'split'),
            )
        return split(*positional, **named)

    @functools.wraps(resize)
    def resize_either_way(images, size, *rest, **named):
        return (
            resize(images, [size, rest[0]], *rest[1:], **named)
            if isinstance(size, int)
            else resize(images, size, *rest, **named)
        )

    tf.concat, tf.split, tf.image.resize_images = (
        concat_either_way,
        split_either_way,
        resize_either_way,
    )
    for name in (
        'softmax_cross_entropy_with_logits',
        'sparse_softmax_cross_entropy_with_logits',
        'sigmoid_cross_entropy_with_logits',
    ):
        setattr(tf.nn, name, _with_positions(getattr(tf.nn, name), ['logits', 'labels', 'name']))
    make_sync = tf.train.SyncReplicasOptimizer.__init__

    @functools.wraps(make_sync)
    def make_sync_either_way(self, *positional, replica_id=None, **named):
        make_sync(self, *positional, **named)
        # now, because programs ask for it when the graph has been finalized
        clean_up_op = tf.no_op(name='clean_up')
        self.get_clean_up_op = lambda: clean_up_op

    tf.train.SyncReplicasOptimizer.__init__ = make_sync_either_way


def _with_positions(function, names):
    """Names the positional arguments of a cross entropy, which must be named since 1.0."""

    @functools.wraps(function)
    def call(*positional, **named):
        return function(**dict(zip(names, positional), **named))

    return call


def _let_averages_and_slots_be_made():
    """Moving averages and optimizers make variables also after `reuse_variables`: before 1.0 it did
    not forbid that."""
    tf.train.ExponentialMovingAverage.apply = _with_new_variables(
        tf.train.ExponentialMovingAverage.apply
    )
    tf.train.Optimizer.apply_gradients = _with_new_variables(tf.train.Optimizer.apply_gradients)


def _with_new_variables(method):
    @functools.wraps(method)
    def call(*positional, **named):
        if not tf.get_variable_scope().reuse:
            return method(*positional, **named)
        with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
            return method(*positional, **named)

    return call


def _let_flags_be_set():
    """Lets a program set flags that it has not defined, as it could up to TensorFlow 1.4."""
    wrapper = type(tf.app.flags.FLAGS)
    set_flag = wrapper.__setattr__

    @functools.wraps(set_flag)
    def define_and_set(self, name, value):
        if name not in self:
            tf.app.flags.DEFINE_string(name, None, '')
        set_flag(self, name, value)

    wrapper.__setattr__ = define_and_set
    flags.FlagValues._parse_flags = lambda self, args=None: (
        self.is_parsed() or self(sys.argv, known_only=True)
    )


def _warn_of_unknown_flags():
    """Warns once of each flag that neither TensorFlow nor argparse knows: tf.app.run ignores it, as
    it did in version 1."""
    parse, parse_by_argparse = flags.FlagValues.__call__, argparse.ArgumentParser.parse_known_args
    words_of_argparse, flags_of_argparse, reported = set(), set(), set()

    @functools.wraps(parse_by_argparse)
    def parse_and_remember(self, args=None, namespace=None):
        namespace, rest = parse_by_argparse(self, args, namespace)
        words_of_argparse.update(set(sys.argv) - set(rest))
        flags_of_argparse.update(vars(namespace))
        return namespace, rest

    @functools.wraps(parse)
    def parse_and_warn(self, argv, known_only=False):
        rest = parse(self, argv, known_only)
        for word in rest[1:] if self is flags.FLAGS and known_only else []:
            found = re.match(r'--?([a-zA-Z][\w-]*)', word)
            flag = found and found.group(1)
            if (
                flag
                and word not in words_of_argparse
                and flag not in reported
                and not _is_read_by_program(flag)
            ):
                reported.add(flag)
                defined = [
                    own.name
                    for module, owned in self.flags_by_module_dict().items()
                    if 'absl' not in module
                    for own in owned
                ]
                similar = difflib.get_close_matches(
                    flag.replace('-', '_'), flags_of_argparse.union(defined), 1
                )
                errors.warn(
                    'tf.app.run ignores --%s, which is no flag of this program%s'
                    % (flag, '; did you mean --%s?' % similar[0] if similar else '')
                )
        return rest

    argparse.ArgumentParser.parse_known_args, flags.FlagValues.__call__ = (
        parse_and_remember,
        parse_and_warn,
    )


def _is_read_by_program(flag):
    """Returns whether the program may define the flag later, or read it by itself: the name is in
    quotes, or an attribute.

    With getopt every flag is known, because getopt rejects all others.
    """
    with open(sys.modules['__main__'].__file__, 'rb') as program:
        return bool(
            re.search(
                rb'["\']-{0,2}%s["\'=]|\b(FLAGS|args)\.%s\b|getopt\(' % (2 * (flag.encode(),)),
                program.read(),
            )
        )


def _follow_sessions():
    """Remembers every session; without a GPU, makes it place on the CPU what the program places on
    a GPU."""
    has_gpu = bool(tf.config.experimental.list_physical_devices('GPU'))
    base = tf.Session.__mro__[1]
    init = base.__init__

    @functools.wraps(init)
    def init_and_remember(self, target='', graph=None, config=None):
        if not has_gpu:
            given, config = config, tf.ConfigProto(allow_soft_placement=True)
            if given is not None:
                config.CopyFrom(given)
                config.allow_soft_placement = True
        init(self, target, graph, config)
        _sessions.add(self)

    base.__init__ = init_and_remember


def close_sessions():
    """Closes what sessions the program left open, and waits for the threads of its queues: Python
    may abort if they run on."""
    for session in list(_sessions):
        session.close()
    for thread in threading.enumerate():
        # which waits for ever
        if thread.name.startswith('QueueRunnerThread') and not thread.name.endswith(
            'close_on_stop'
        ):
            thread.join(_PATIENCE_SECS)
