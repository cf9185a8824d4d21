"""Command line of the scripts: start-up, flags, the Job that they describe, errors in one line."""

from cifar10.cli import startup

startup.start_early()  # before a module of this package imports a package that is missing
