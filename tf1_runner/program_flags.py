"""Flags of a program: tf.app.flags and tf.app.run as in TensorFlow 1."""

import difflib
import functools
import glob
import os
import re
import sys

from absl import app, flags
import tensorflow.compat.v1 as tf

from cifar10 import errors


def install():
    """Let flags be set as up to TensorFlow 1.4; warn of unknown flags."""
    # TensorFlow up to 1.4 had no absl, so that its flags, such as log_dir, may be defined again.
    for name in flags.FLAGS:
        flags.FLAGS[name].allow_override = name != 'verbosity'  # absl needs its own object
    _let_flags_be_set()
    _warn_of_unknown_flags()


def _let_flags_be_set():
    """Accept early reads, new names, and _parse_flags, as TensorFlow did up to 1.4.

    An early read parses the flags that are defined already.
    """
    wrapper = type(tf.app.flags.FLAGS)
    get_flag, set_flag = wrapper.__getattr__, wrapper.__setattr__

    def parse_and_get(self, name):
        flags.FLAGS._parse_flags()
        return get_flag(self, name)

    def define_and_set(self, name, value):
        if name not in self:
            similar = difflib.get_close_matches(name, self, 1, 0.8)
            if similar:
                errors.warn(f'FLAGS.{name} is a new flag; did you mean FLAGS.{similar[0]}?')
            tf.app.flags.DEFINE_string(name, None, '')
        set_flag(self, name, value)

    wrapper.__getattr__, wrapper.__setattr__ = parse_and_get, define_and_set
    flags.FlagValues._parse_flags = lambda self, args=None: (
        self.is_parsed() or self(sys.argv, known_only=True)
    )


def _warn_of_unknown_flags():
    """Warn once about each flag that neither the program nor its modules contain.

    As in version 1, tf.app.run ignores unknown flags.
    """
    parse, warned = flags.FlagValues.__call__, set()

    def parse_and_warn(self, argv, known_only=False):
        rest = parse(self, argv, known_only)
        path = getattr(sys.modules['__main__'], '__file__', None)
        if self is flags.FLAGS and known_only and path:  # A notebook has no path.
            words = set()
            for source in glob.glob(os.path.join(glob.escape(os.path.dirname(path)), '*.py')) + [
                path
            ]:
                if not os.path.isfile(source):
                    continue
                with open(source, encoding='utf-8', errors='replace') as file:
                    words.update(re.findall(r'\w[\w-]*', file.read()))
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
