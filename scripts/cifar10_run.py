#!/usr/bin/env python3
"""Runs an unchanged TensorFlow 1 program or notebook on today's TensorFlow.

In the program, `import tensorflow` imports the TensorFlow 1 API. `import cifar10` and
`import cifar10_input` import the modules of the TensorFlow tutorial: copies beside the program, or
this package's, which are faster.

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
import difflib
import re
import shlex

from cifar10.cli import program
from cifar10.errors import UserError
from cifar10.tutorial import load_ipython_extension  # noqa: F401 (%load_ext scripts.cifar10_run)


def argument_parser():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        usage='cifar10_run.py [--package_modules] PROGRAM [ITS FLAGS]',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument('-h', '-help', '--help', action='help', help='Show this help.')
    parser.add_argument(
        '--package_modules',
        action='store_true',
        help="Use this package's cifar10 and cifar10_input, not copies in the program's directory.",
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
    """Return the flags of this script, the path of the program and the flags of the program.

    A mistake ends the script with one line on stderr and exit status 2.
    """
    parser = argument_parser()
    arguments, unknown = parser.parse_known_args()
    if arguments.version:
        program.print_versions()
        sys.exit()
    if not arguments.program:
        message = 'the name of the program is missing: give the path of a Python file or a notebook'
    elif unknown:
        message = _describe_unknown_flags(arguments, unknown)
    else:
        return arguments
    parser.exit(2, f'cifar10_run.py: error: {message}\n')


def _describe_unknown_flags(arguments, unknown):
    """Return a message about flags before the name of the program, and the remedy."""
    if difflib.get_close_matches(unknown[0].replace('-', '_'), ['__package_modules'], 1, 0.8):
        return f'{unknown[0]} is unknown: use --package_modules'
    # Without `=`, a value looks like the name of the program.
    words = [*unknown, arguments.program, *arguments.flags]
    path = next(
        (word for word in words if re.fullmatch(r'[^-].*\.(py|ipynb)', word)), arguments.program
    )
    words.remove(path)
    command = [*(['--package_modules'] if arguments.package_modules else []), path, *words]
    return (
        f'{unknown[0]} is before the name of the program; the flags of the program come after it: '
        f'cifar10_run.py {" ".join(map(shlex.quote, command))}'
    )


def main():
    """Run the program on the command line."""
    arguments = parse()
    startup.import_tensorflow()
    from cifar10.tutorial import runner

    try:
        runner.run(arguments.program, arguments.flags, arguments.package_modules)
    except UserError as error:
        program.print_traceback()
        sys.exit(f'cifar10_run.py: error: {error}')


if __name__ == '__main__':
    main()
