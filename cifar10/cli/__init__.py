"""Command line of the scripts: start-up, flags, Job, one-line errors."""

from cifar10.cli import startup

startup.start_early()  # another import could fail on a missing package
