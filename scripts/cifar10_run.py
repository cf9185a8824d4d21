#!/usr/bin/env python3
"""Runs an unchanged TensorFlow 1 program or notebook on today's TensorFlow.

In the program, `import tensorflow` imports the TensorFlow 1 API. `import cifar10` and
`import cifar10_input` import the modules of the TensorFlow tutorial, with the input and network of
this package.

  cifar10_run.py cifar10_train.py --max_steps=1000
"""

import os
import sys

# Import from this checkout, also if a notebook has imported this file (%load_ext). In a script, the
# runner later puts the program's directory here.
sys.path[: __name__ == '__main__'] = [os.path.dirname(os.path.dirname(os.path.realpath(__file__)))]

from cifar10.system import startup

startup.start(__name__)

import argparse

from cifar10.cli import program
from cifar10.errors import UserError
from cifar10.tutorial import load_ipython_extension  # noqa: F401 (%load_ext scripts.cifar10_run)


def argument_parser():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        usage='cifar10_run.py [--own_modules] PROGRAM [ITS FLAGS]',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        '--own_modules',
        action='store_true',
        help="Use the copies of cifar10.py and cifar10_input.py in the program's directory.",
    )
    parser.add_argument(
        '--version',
        action='store_true',
        help='Print the versions of this package, Python and TensorFlow.',
    )
    parser.add_argument(
        'program', metavar='PROGRAM', nargs='?', help='The Python file or Jupyter notebook.'
    )
    parser.add_argument('flags', metavar='ITS FLAGS', nargs=argparse.REMAINDER)
    return parser


def parse():
    """Return the flags of this script, the path of the program and the flags of the program."""
    parser = argument_parser()
    arguments = parser.parse_args()
    if arguments.version:
        program.print_versions()
        sys.exit()
    if not arguments.program:
        parser.error(
            'the name of the program is missing: give the path of a Python file or a notebook'
        )
    return arguments


def main():
    """Run the program on the command line."""
    arguments = parse()
    startup.import_tensorflow()
    from cifar10.tutorial import runner

    try:
        runner.run(arguments.program, arguments.flags, arguments.own_modules)
    except UserError as error:
        program.print_traceback()
        sys.exit(f'cifar10_run.py: error: {error}')
    except KeyboardInterrupt:
        print('cifar10_run.py: interrupted', file=sys.stderr)
        sys.exit(130)


if __name__ == '__main__':
    main()
