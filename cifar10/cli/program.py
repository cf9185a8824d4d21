"""Start and end of the scripts: command line, one-line errors, exit statuses."""

import contextlib
import ctypes
import os
import platform
import runpy
import signal
import sys
import threading

from absl import app, flags

from cifar10 import __version__, errors
from cifar10.system import startup

FLAGS = flags.FLAGS

# TensorFlow's errors about files, disk and memory, by class name; hints for the user.
_HINTS = {
    'ResourceExhaustedError': ': not enough memory or disk space: choose a smaller --batch_size, or free some space',
    'NotFoundError': '',
    'PermissionDeniedError': '',
    'DataLossError': '',  # a file is damaged
}


def run_script():
    """Run the script with the name of this command: the entry point of an installation."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = os.path.splitext(os.path.basename(sys.argv[0]))[0] + '.py'
    path = os.path.join(package, 'scripts', script)
    if not os.path.exists(path):  # An editable installation uses the scripts of the checkout.
        path = os.path.join(os.path.dirname(package), 'scripts', script)
    runpy.run_path(path, run_name='__main__')


def versions(config_proto=None):
    """Return the versions and the processors; for `config_proto` see machine.gpu_names."""
    import tensorflow.compat.v1 as tf

    from cifar10.system import machine

    cpu = f'{machine.cpu_name()} (cores: {machine.num_cores()})'
    devices = ', '.join([cpu] + machine.gpu_names(config_proto))
    return f'cifar10 {__version__}, Python {platform.python_version()}, TensorFlow {tf.__version__}; {devices}'


def start(name, define_flags, check=None, arguments=None, hint='', needs_tensorflow=True):
    """Start a script: parse the command line, then import TensorFlow.

    The import takes seconds, so mistakes are found first. A mistake ends the script with one line
    on stderr and exit status 2. Contradictory flags give exit status 1.

    A child process of multiprocessing only imports TensorFlow. A library does nothing.

    Args:
      name: the `__name__` of the script.
      define_flags: a function that defines the flags.
      check: a function that raises UserError if flags contradict each other.
      arguments: the positional arguments. None: flags only. A name like 'IMAGE...': at least one.
        '[FLAGS...]': any number. A dict from commands to the names of their arguments: a command.
      hint: end of the message about an unknown flag.
      needs_tensorflow: False for a script that does not use TensorFlow.

    Returns:
      The positional arguments; none in a library.
    """
    if name == '__mp_main__':
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, which ends this one.
        startup.import_tensorflow()
    if name != '__main__':
        return []
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # It ends the imports at once.
    startup.protect_stdout()
    define_flags()
    app.define_help_flags()
    flags.DEFINE_boolean(
        'version',
        False,
        'Print the versions of this package, Python and TensorFlow, the CPU and the GPUs.',
    )
    for module, module_flags in FLAGS.flags_by_module_dict().items():
        if module.startswith('cifar10.'):  # for --help
            for flag in module_flags:
                FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    try:
        words = _parse(sys.argv, arguments, hint)
        if check:
            check()
        if needs_tensorflow:
            startup.import_tensorflow()
    except (errors.UserError, OSError) as error:  # OSError: no usable temporary directory
        _fail(1, f'error: {error}')
    return words


def run(main, arguments=(), uses_gpus=True):
    """Call main(*arguments); exit with the status that it returns.

    Without `uses_gpus`, TensorFlow does not see the GPUs: any session would allocate all of their
    memory.

    A UserError, an OSError or an error of _HINTS gives one line on stderr and exit status 1. Other
    errors, such as those of a changed network, keep their traceback.
    """
    if not uses_gpus:
        os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
    if sys.modules.get('tensorflow'):
        from cifar10.system import machine

        machine.set_up_tensorflow()
    if hasattr(threading, 'excepthook'):  # since Python 3.8
        usual = threading.excepthook
        # The threads of tf.summary.FileWriter and tf.train.SyncReplicasOptimizer leave their errors
        # to the main thread, which prints one line.
        silent = 'EventLoggerThread', 'QueueRunnerThread-sync_token_q'
        threading.excepthook = lambda args: args.thread.name.startswith(silent) or usual(args)
    app.run(lambda _: _call(main, arguments), flags_parser=lambda argv: argv)


def _parse(argv, arguments, hint):
    """Return the positional arguments."""
    # absl has -help and -?, but no -h. Later words can be those of another program.
    end = len(argv) if FLAGS.is_gnu_getopt() else 2
    argv = ['--help' if word == '-h' else word for word in argv[:end]] + argv[end:]
    try:
        words = FLAGS(argv)[1:]
    except (flags.Error, ValueError) as error:  # ValueError: from flags of absl
        message = ' '.join(str(error).split())
        message += hint * isinstance(error, flags.UnrecognizedFlagError)
        _fail(2, f'error: {message}; --help lists the flags')
    except SystemExit:  # --help has been printed; absl exits with 1
        _end(0)
    if FLAGS.version:
        startup.import_tensorflow()
        print(versions())
        _end(0)
    if isinstance(arguments, dict):
        names = arguments.get(words[0]) if words else None
        is_valid = names is not None and len(words) == 1 + len(names) and '' not in words
        expected = '|'.join(arguments) if names is None else ' '.join([words[0], *names])
    else:
        expected = arguments or 'flags only'
        is_valid = bool(words) == bool(arguments) or expected.startswith('[')
    if not is_valid:
        given = ' '.join(map(repr, words)) or 'none'
        _fail(2, f'error: the arguments must be {expected}, not {given}; --help explains the usage')
    return words


def _call(main, arguments):
    try:
        status = main(*arguments)
        sys.stdout.flush()
    except (errors.UserError, OSError) as error:
        _fail(1, f'error: {error}')
    except BaseException as error:
        hint = _HINTS.get(type(error).__name__)
        if hint is not None:
            _fail(1, f'error: {errors.reason(error)}{hint}')
        # TensorFlow's context managers may raise another error after that of a StopRequest.
        while not (isinstance(error, KeyboardInterrupt) and error.args):
            if error.__context__ is None:
                raise
            error = error.__context__
        (number,) = error.args
        status = 128 + number
        if number != signal.SIGPIPE:
            errors.warn(f'interrupted ({signal.Signals(number).name})')
    _end(status or 0)


def _fail(status, message):
    errors.warn(message)
    _end(status)


def _end(status):
    """End the process without finalization, which could wait for blocked threads forever."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # device placements are printed by C's printf
    os._exit(status)
