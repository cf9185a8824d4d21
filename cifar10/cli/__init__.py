"""Command line of the scripts: start-up, flags, the Job that they describe, errors in one line."""

from cifar10.cli.startup import check_packages

check_packages()  # before a module of this package imports one that is missing
