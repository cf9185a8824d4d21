"""What every script does with its flags and its main function: flags are parsed, and errors end it
with one line."""

import contextlib
import os
import platform
import re
import signal
import sys

from absl import app, flags

from cifar10 import __version__, errors
from cifar10.cli import quiet
from cifar10.runs import signals

FLAGS = flags.FLAGS


class _VersionFlag(flags.BooleanFlag):
    """Prints the versions at once, whatever else is on the command line, as --help does."""

    def __init__(self):
        super().__init__(
            'version',
            False,
            'Print the versions of this package, Python and TensorFlow, and what computes.',
        )

    def parse(self, argument):
        super().parse(argument)
        if self.value:
            print_versions()
            sys.exit()


def print_versions():
    """Prints one line for a bug report."""
    quiet.import_tensorflow()
    print(versions())


def versions(config=None):
    """Returns the versions of the package, Python and TensorFlow, and the names of the processor
    and the GPUs.

    Args:
      config: see machine.gpus.
    """
    import tensorflow.compat.v1 as tf

    from cifar10.runs import machine

    computing = ['%s (cores: %d)' % (machine.processor(), machine.num_cores())]
    return 'cifar10 %s, Python %s, TensorFlow %s; %s' % (
        __version__,
        platform.python_version(),
        tf.__version__,
        ', '.join(computing + machine.gpus(config)),
    )


def parse(commands=None, rest=None, check=None, needs_tensorflow=True, words=None):
    """Parses the command line by the flags that are defined, then imports TensorFlow, which takes
    seconds.

    Args:
      commands: the words from which the user chooses one, each with the names of its arguments, if
        there are any.
      rest: what words after -- are, as in 'the flags of the trainer'; None if there are none.
      words: what the other words are, of which the user gives one or more, as in 'IMAGE'; None if
        there are none.
      check: a function that raises UserError if the flags do not fit together.
      needs_tensorflow: whether the script needs it, or which of the commands do.

    Returns:
      The arguments of the script's main function: the command and its arguments, or the words; or
      with `rest` a list of the words after --.

    A mistake gives one line on stderr and exit status 2, or 1 if the flags do not fit together.
    """
    quiet.guard_output()
    app.define_help_flags()
    if 'version' not in FLAGS:
        flags.DEFINE_flag(_VersionFlag())
    for module, module_flags in FLAGS.flags_by_module_dict().items():
        if module.startswith('cifar10.'):  # --help lists these as the script's own flags
            for flag in module_flags:
                FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    arguments = _parse(sys.argv, commands, rest, words)
    try:
        if check:
            check()
    except errors.UserError as error:
        _fail(1, 'error: %s' % error)
    if needs_tensorflow is True or needs_tensorflow and arguments[0] in needs_tensorflow:
        quiet.import_tensorflow()
    return arguments


def run(main, arguments=()):
    """Calls `main` with the arguments that `parse` has returned. What it returns is the exit
    status, None for 0.

    A user's mistake gives one line on stderr and exit status 1; a signal one line and 128 + its
    number. A bug keeps its traceback.
    """
    if sys.modules.get('tensorflow'):
        from cifar10.runs import machine

        machine.set_up_tensorflow()
    app.run(lambda _: _call(main, arguments), flags_parser=lambda argv: argv)


def _parse(argv, commands, rest, words):
    """The arguments: none, or one of `commands` and its arguments, or `words`, or with `rest` a
    list of the words after --."""
    after = []
    if rest and '--' in argv:
        argv, after = argv[: argv.index('--')], argv[argv.index('--') + 1 :]
    try:
        arguments = FLAGS(argv)[1:]
    except (flags.Error, ValueError) as error:  # the second from absl's own flags
        hint = (
            '; %s come after --' % rest
            if rest and isinstance(error, flags.UnrecognizedFlagError)
            else ''
        )
        # a flag that is missing
        told = re.sub('^flag --[^=]*=None: ', '', ' '.join(str(error).split()))
        _fail(2, 'error: %s%s; --help lists the flags' % (told, hint))
    except SystemExit:  # --help has been printed; absl ends with 1
        _end(0)
    if words and not arguments:
        _fail(2, 'error: %s is missing; --help explains the usage' % words)
    if not words:
        _check_words(arguments, commands or {})
    if '' in arguments:
        _fail(
            2,
            'error: an argument is empty: the name of a file or directory is missing; --help explains the usage',
        )
    return [after] if rest else arguments


def _check_words(words, commands):
    """Ends the program unless the words are one of the commands, if there are any, and its
    arguments."""
    if commands and not any(words[:1]):
        _fail(2, 'error: a command is missing: %s; --help explains them' % _listed(commands))
    known = words[:1] if words and words[0] in commands else []
    wanted = commands[known[0]] if known else ()
    if commands and not known:
        _fail(
            2,
            'error: unknown command %s: give %s; --help explains them'
            % (words[0], _listed(commands)),
        )
    unexpected = words[len(known) + len(wanted) :]
    if unexpected:
        _fail(
            2, 'error: unexpected argument %s; --help explains the usage' % (unexpected[0] or "''")
        )
    if len(words) < len(known) + len(wanted):
        _fail(2, 'error: %s needs %s; --help explains the usage' % (known[0], ' and '.join(wanted)))


def _listed(commands):
    *first, last = commands
    return '%s or %s' % (', '.join(first), last)


def _call(main, arguments):
    try:
        status = main(*arguments)
        sys.stdout.flush()
    except (errors.UserError, OSError) as error:
        _fail(1, 'error: %s' % error)
    except _of_tensorflow('ResourceExhaustedError') as error:
        _fail(
            1,
            'error: %s: not enough memory or disk space; choose a smaller --batch_size, or make room'
            % errors.line(error),
        )
    except _of_tensorflow('NotFoundError', 'PermissionDeniedError') as error:
        # a file vanished, or cannot be read
        _fail(1, 'error: %s' % errors.line(error))
    except BaseException as error:
        interrupt = _interrupt(error)
        if interrupt is None:
            raise
        if interrupt.number == getattr(signal, 'SIGPIPE', None):  # nobody reads any more
            _end(128 + interrupt.number)
        _fail(128 + interrupt.number, 'interrupted (%s)' % signal.Signals(interrupt.number).name)
    _end(status or 0)


def _of_tensorflow(*names):
    """Classes of errors, none if TensorFlow is not imported."""
    tf = sys.modules.get('tensorflow')
    return tuple(getattr(tf.errors, name) for name in names) if tf else ()


def _interrupt(error):
    """The signals.Interrupted that caused the error: TensorFlow's context managers raise errors of
    their own on top of it."""
    while error and not isinstance(error, signals.Interrupted):
        error = error.__context__
    return error


def _fail(status, message):
    errors.warn(message)
    _end(status)


def _end(status):
    """Ends the process without what Python and TensorFlow do at the end: it could wait for ever for
    threads that are blocked."""
    # a signal, or nobody reads any more: be quick
    with contextlib.suppress(OSError, signals.Interrupted), signals.Interruptible():
        sys.stdout.flush()
    status = status or int(quiet.has_lost_output())
    if FLAGS['run_with_profiling'].value:  # the flag is absl's, which then writes the profile
        sys.exit(status)
    os._exit(status)
