"""What every script does with its main function: flags are parsed, and errors end it with one line."""
import contextlib
import os
import signal
import sys

from absl import app, flags

from cifar10 import errors
from cifar10.cli import output
from cifar10.runs import signals

FLAGS = flags.FLAGS


def run(main, commands=(), rest=None):
    """Parses the command line and calls `main`, with the command if there are `commands` to choose from.

    If `rest` says what words after -- are, as in 'the flags of the trainer', `main` gets a list of them. What `main` returns is the
    exit status, None for 0.

    A user's mistake gives one line on stderr and exit status 1, or 2 for a mistake in the command line; a signal one line and 128 +
    its number. A bug keeps its traceback.
    """
    output.guard()
    if sys.modules.get('tensorflow'):  # the import takes seconds: a script that does without it starts at once
        from cifar10.runs import machine
        machine.set_up_tensorflow()
    for module, module_flags in FLAGS.flags_by_module_dict().items():
        if module.startswith('cifar10.'):  # --help lists these as the script's own flags
            for flag in module_flags:
                FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    app.run(lambda arguments: _call(main, arguments), flags_parser=lambda argv: _parse(argv, commands, rest))


def _parse(argv, commands, rest):
    """The arguments: none, or one of `commands`, or with `rest` a list of the words after --."""
    words = []
    if rest and '--' in argv:
        argv, words = argv[:argv.index('--')], argv[argv.index('--') + 1:]
    try:
        arguments = FLAGS(argv)[1:]
    except (flags.Error, ValueError) as error:  # the second from absl's own flags
        hint = '; %s come after --' % rest if rest and isinstance(error, flags.UnrecognizedFlagError) else ''
        _fail(2, 'error: %s%s; --help lists the flags' % (' '.join(str(error).split()), hint))
    except SystemExit:  # --help has been printed; absl ends with 1
        _end(0)
    if commands and not arguments:
        _fail(2, 'error: a command is missing: %s or %s; --help explains them' % (', '.join(commands[:-1]), commands[-1]))
    unexpected = arguments[1:] if commands and arguments[0] in commands else arguments
    if unexpected:
        _fail(2, 'error: unexpected argument %s; --help explains the usage' % unexpected[0])
    return [words] if rest else arguments


def _call(main, arguments):
    try:
        status = main(*arguments)
        output.flush()
    except (errors.UserError, OSError) as error:
        _fail(1, 'error: %s' % error)
    except _of_tensorflow('ResourceExhaustedError') as error:
        _fail(1, 'error: %s: not enough memory or disk space; choose a smaller --batch_size, or make room' % errors.reason(error))
    except _of_tensorflow('NotFoundError', 'PermissionDeniedError') as error:  # a file vanished, or cannot be read
        _fail(1, 'error: %s' % errors.reason(error))
    except BaseException as error:
        interrupt = _interrupt(error)
        if interrupt is None:
            raise
        if interrupt.number == signal.SIGPIPE:  # nobody reads any more
            _end(128 + interrupt.number)
        _fail(128 + interrupt.number, 'interrupted (%s)' % signal.Signals(interrupt.number).name)
    _end(status or 0)


def _of_tensorflow(*names):
    """Classes of errors, none if TensorFlow is not imported."""
    tf = sys.modules.get('tensorflow')
    return tuple(getattr(tf.errors, name) for name in names) if tf else ()


def _interrupt(error):
    """The signals.Interrupted that caused the error: TensorFlow's context managers raise errors of their own on top of it."""
    while error and not isinstance(error, signals.Interrupted):
        error = error.__context__
    return error


def _fail(status, message):
    errors.warn(message)
    _end(status)


def _end(status):
    """Ends the process without what Python and TensorFlow do at the end: it could wait for ever for threads that are blocked."""
    with contextlib.suppress(OSError, signals.Interrupted), signals.Interruptible():  # a signal, or nobody reads any more: be quick
        output.flush()
    status = status or int(output.lost())
    if FLAGS['run_with_profiling'].value:  # the flag is absl's, which then writes the profile
        sys.exit(status)
    os._exit(status)
