#!/usr/bin/env python3
"""Runs a TensorFlow 1 program on CIFAR-10 as it is printed in a book, on the TensorFlow of today.

For the program, `import tensorflow` is version 1, and `import cifar10` and `import cifar10_input`
are the two modules of the TensorFlow tutorial on this package.

  cifar10_run.py cifar10_train.py --max_steps=1000
"""

import os
import sys

# A checkout needs no installation. The directory of the program takes this place later.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from cifar10.cli import quiet

quiet.start(__name__)

import argparse
import itertools

from cifar10.cli import program


class Version(argparse.Action):
    """Prints the versions, and ends."""

    def __call__(self, *unused_args):
        program.print_versions()
        sys.exit()


def parse():
    """Returns the flags of this script and the path of the program, and a list of what comes after
    it: the program's own flags."""
    parser = argparse.ArgumentParser(
        usage='cifar10_run.py [--own-modules] PROGRAM.py [ITS FLAGS]',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        '--own-modules',
        action='store_true',
        help="use the program's own copies of cifar10.py and cifar10_input.py, which are in its directory",
    )
    parser.add_argument(
        '--version',
        action=Version,
        nargs=0,
        help='print the versions of this package, Python and TensorFlow',
    )
    parser.add_argument('program', metavar='PROGRAM.py', help='the program')
    num_own = 1 + len(
        list(itertools.takewhile(lambda argument: argument.startswith('-'), sys.argv[1:]))
    )
    given, program_flags = parser.parse_args(sys.argv[1 : num_own + 1]), sys.argv[num_own + 1 :]
    if {'--own-modules', '--own_modules'} & set(program_flags):
        parser.error(
            '--own-modules belongs before the name of the program: cifar10_run.py --own-modules %s'
            % given.program
        )
    return given, program_flags


# a mistake in the flags is told before TensorFlow is imported, which takes seconds
if __name__ == '__main__':
    GIVEN, PROGRAM_FLAGS = parse()
    quiet.import_tensorflow()

from cifar10.errors import UserError
from cifar10.tutorial import runner


def main():
    """Runs the program that the command line names."""
    try:
        if not GIVEN.program:
            raise UserError('the name of the program is missing: give the path of a Python file')
        runner.run(GIVEN.program, PROGRAM_FLAGS, GIVEN.own_modules)
    except UserError as error:
        sys.exit('cifar10_run.py: error: %s' % error)
    except KeyboardInterrupt:
        print('cifar10_run.py: interrupted', file=sys.stderr)
        sys.exit(130)


if __name__ == '__main__':
    main()
