"""Parser of the command line; one-line errors and exit statuses of the scripts."""

import contextlib
import ctypes
import os
import platform
import sys
import traceback

from absl import app, flags

from cifar10 import __version__, errors
from cifar10.cli import flag_remedies
from cifar10.system import signals, startup

FLAGS = flags.FLAGS

_arguments = []  # of the main function, set by `parse`


# Hints for TensorFlow errors that are not bugs, by class name.
_HINTS = {
    'ResourceExhaustedError': ': not enough memory or disk space: choose a smaller --batch_size, or free some space',
    'NotFoundError': '',  # a file vanished
    'PermissionDeniedError': '',
}


def print_versions():
    """Print the versions for a bug report."""
    startup.import_tensorflow()
    print(versions())


def versions(config_proto=None):
    """Return the versions of the package, Python and TensorFlow, the CPU and the GPUs.

    Args:
      config_proto: see machine.gpu_names.
    """
    import tensorflow.compat.v1 as tf

    from cifar10.system import machine

    cpu = f'{machine.cpu_name()} (cores: {machine.num_cores()})'
    devices = ', '.join([cpu] + machine.gpu_names(config_proto))
    return f'cifar10 {__version__}, Python {platform.python_version()}, TensorFlow {tf.__version__}; {devices}'


def start(name, commands=None, metavar=None):
    """Return a decorator for the function that defines the flags of a script.

    It starts the script, and does nothing in a library. Flags are parsed after the function, or at
    the `yield` of a generator, which then checks the flags. The import of TensorFlow takes seconds,
    and follows the checks.

    Args:
      name: the `__name__` of the script.
      commands: see `parse`.
      metavar: see `parse`.
    """

    def decorate(define_flags):
        startup.start(name)
        if name == '__main__':
            steps = iter(define_flags() or [])
            next(steps, None)
            parse(commands, metavar=metavar, check=lambda: next(steps, None))
        return define_flags

    return decorate


def parse(commands=None, remainder=None, check=None, needs_tensorflow=True, metavar=None):
    """Parse the command line, then import TensorFlow.

    The arguments of the main function are the command and its arguments, the positional arguments,
    or the list of words after --. A mistake ends the script with one line on stderr and exit status
    2. Contradictory flags give exit status 1.

    Args:
      commands: names of the arguments of each command; None if there are no commands.
      remainder: name of the words after --, such as 'the flags of the trainer', or None.
      check: a function that raises UserError if flags contradict each other.
      needs_tensorflow: a bool, or the commands that need TensorFlow.
      metavar: name of the positional arguments (at least one), such as 'IMAGE', or None.
    """
    startup.protect_stdout()
    app.define_help_flags()
    flags.DEFINE_boolean(
        'version',
        False,
        'Print the versions of this package, Python and TensorFlow, the CPU and the GPUs.',
    )
    if '--version' in sys.argv:  # has priority over mistakes
        print_versions()
        sys.exit()
    for module, module_flags in FLAGS.flags_by_module_dict().items():
        if module.startswith('cifar10.'):  # for --help
            for flag in module_flags:
                FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    _arguments[:] = _parse(sys.argv, commands, remainder, metavar)
    try:
        if check:
            check()
    except errors.UserError as error:
        _fail(1, f'error: {error}')
    if needs_tensorflow is True or needs_tensorflow and _arguments[0] in needs_tensorflow:
        startup.import_tensorflow()


def run(main):
    """Call `main` with the arguments from `parse`; exit with the status that `main` returns.

    A UserError, an OSError or an error of _HINTS gives one line on stderr and exit status 1. A
    signal gives one line (a closed pipe none) and 128 + its number. Other errors keep their
    traceback. See also `print_traceback`.
    """
    if sys.modules.get('tensorflow'):
        from cifar10.system import machine

        machine.set_up_tensorflow()
    app.run(lambda _: _call(main, _arguments), flags_parser=lambda argv: argv)


def _parse(argv, commands, remainder, metavar):
    """Return the arguments of the main function."""
    remaining = []
    if remainder and '--' in argv:
        argv, remaining = argv[: argv.index('--')], argv[argv.index('--') + 1 :]
    try:
        # absl has -help and -?, but no -h.
        arguments = FLAGS(['--help' if word == '-h' else word for word in argv])[1:]
        if FLAGS['log_dir'].present:  # a flag of absl without effect
            raise flags.UnrecognizedFlagError('log_dir', f'--log_dir={FLAGS.log_dir}')
    except (flags.Error, ValueError) as error:  # ValueError: from flags of absl
        message = _describe_error(error, remainder)
        _fail(2, f'error: {message}; --help lists the flags')
    except SystemExit:  # --help has been printed; absl exits with 1
        _end(0)
    expected = [metavar + '...'] if metavar else []
    if commands:
        command = arguments[0] if arguments else ''
        expected = [command if command in commands else '|'.join(commands)]
        expected += commands.get(command, ())
        is_valid = command in commands and len(arguments) == len(expected)
    else:
        is_valid = len(arguments) == len(expected) or metavar and arguments
    if '' in arguments or not is_valid:
        _fail(
            2,
            f'error: the arguments must be {" ".join(expected) or "flags only"}, not '
            f'{" ".join(map(repr, arguments)) or "none"}; --help explains the usage',
        )
    return [remaining] if remainder else arguments


def _describe_error(error, remainder):
    """Return the message and the remedy for an error of the parser of flags."""
    if isinstance(error, flags.UnrecognizedFlagError):
        known = {flag.name for flag in FLAGS.get_key_flags_for_module(sys.argv[0])}
        remedy = flag_remedies.find_remedy(error.flagvalue, known, bool(remainder))
        if remedy:
            return f'{error.flagvalue} is unknown: {remedy}'
    hint = f'; {remainder} come after --' if remainder else ''
    return ' '.join(str(error).split()) + hint


def _call(main, arguments):
    try:
        status = main(*arguments)
        sys.stdout.flush()
    except (errors.UserError, OSError) as error:
        _fail(1, f'error: {error}')
    except BaseException as error:
        hint = _HINTS.get(type(error).__name__)
        if hint is not None:
            _fail(1, f'error: {errors.one_line_message(error)}{hint}')
        # TensorFlow's context managers may raise another error after the signal's.
        while not isinstance(error, signals.SignalInterrupt):
            if error.__context__ is None:
                raise
            error = error.__context__
        status = 128 + error.signum
        if error.signum != signals.BROKEN_PIPE_SIGNAL:
            errors.warn(f'interrupted ({error})')
    _end(status or 0)


def print_traceback():
    """Print the traceback of the handled exception, if TF_CPP_MIN_LOG_LEVEL is 0.

    It is for bug reports: the message for the user stays the last line.
    """
    if os.environ.get('TF_CPP_MIN_LOG_LEVEL') == '0' and sys.exc_info()[0] and sys.stderr:
        with contextlib.suppress(OSError):  # The reader may have closed the pipe.
            traceback.print_exc()


def _fail(status, message):
    print_traceback()
    errors.warn(message)
    _end(status)


def _end(status):
    """End the process without finalization, which could wait for blocked threads forever."""
    # A signal or a closed pipe must not delay the end.
    with contextlib.suppress(OSError, signals.SignalInterrupt), signals.RaiseOnSignal():
        sys.stdout.flush()
        if os.name == 'posix':
            ctypes.CDLL(None).fflush(None)  # device placements are printed by C's printf
    os._exit(status or int(startup.has_lost_output()))
