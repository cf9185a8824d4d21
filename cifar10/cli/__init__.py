"""Command line of the scripts: flags, Job, one-line errors."""

from cifar10.system import startup

startup.start_early()  # another import could fail on a missing package
