"""Command line: flags, the Job that they describe, errors in one line."""

from cifar10.system import startup

startup.check_packages()  # The modules of this package would fail with a traceback.
