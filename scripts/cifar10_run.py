#!/usr/bin/env python3
"""Runs an unchanged TensorFlow 1 program or notebook on today's TensorFlow.

In the program, `import tensorflow` imports the TensorFlow 1 API. `import cifar10` and
`import cifar10_input` import the modules of the TensorFlow tutorial: copies beside the program, or
this package's, which are faster.

  cifar10_run.py [--package_modules] PROGRAM [ITS FLAGS]
  cifar10_run.py cifar10_train.py --max_steps=1000
"""

import logging
import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path[0] = CHECKOUT  # A program must not import the scripts beside this one.

from cifar10.cli import program

# isort: split
from absl import flags

from cifar10.errors import UserError

FLAGS = flags.FLAGS
STDOUT = sys.stdout  # without the stream of `program.start`


def define_flags():
    """Define the flags."""
    flags.DEFINE_boolean(
        'package_modules',
        False,
        "Use this package's cifar10 and cifar10_input, not copies in the program's directory.",
    )


# The words after the name of the program are for the program.
FLAGS.set_gnu_getopt(__name__ != '__main__')
ARGUMENTS = program.start(
    __name__,
    define_flags,
    arguments='PROGRAM [ITS FLAGS...]',
    hint='; the flags of the program come after its name',
)


def main(path, *arguments):
    """Run the program, with the standard output and the flags of absl as Python has them."""
    package_modules = FLAGS.package_modules
    for name in ('package_modules', 'version'):
        delattr(FLAGS, name)
    FLAGS.unparse_flags()
    logging.getLogger().handlers.clear()  # unparse_flags logs a line, which installs a handler.
    FLAGS.set_gnu_getopt(True)
    sys.stdout = STDOUT
    try:
        from tf1_runner import runner  # may lack a private name of TensorFlow

        # A shell does not expand ~ after =.
        pairs = (word.split('=', 1) for word in arguments)
        words = ['='.join([name, *map(os.path.expanduser, value)]) for name, *value in pairs]
        runner.run(path, words, package_modules, '--package_modules')
    except UserError as error:
        sys.exit(f'cifar10_run.py: error: {error}')


if __name__ == '__main__':
    main(*ARGUMENTS)
