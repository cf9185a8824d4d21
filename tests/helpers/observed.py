"""Hooks by which a test observes and blocks the training of a worker."""

import os
import time

import tensorflow.compat.v1 as tf

_POLL_SECS = 0.01


def observe(gate=None):
    """Patch the sessions of this process.

    Args:
      gate: a file with the step at which the worker is blocked.
    """
    if gate:
        add_hooks([_Gate(gate)])


def add_hooks(hooks):
    """Put these hooks before all others of each monitored session."""
    base = tf.train.MonitoredSession.__base__
    init = base.__init__

    def init_with_hooks(session, creator, others, *arguments, **options):
        init(session, creator, hooks + others, *arguments, **options)

    base.__init__ = init_with_hooks


class _Gate(tf.train.SessionRunHook):
    """Hook that blocks at the step in a file, and prints the blocked step."""

    def __init__(self, path):
        self._path = path

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        step = run_context.session.run(self._step)
        if step >= read(self._path):
            print(f'Blocked at step {step}', flush=True)
        while step >= read(self._path):
            time.sleep(_POLL_SECS)


def read(path):
    """Return the step in the file of a gate."""
    with open(path) as file:
        return int(file.read())


def write(path, step):
    """Open the gate up to a step."""
    with open(path + '.new', 'w') as file:
        file.write(str(step))
    os.replace(path + '.new', path)
