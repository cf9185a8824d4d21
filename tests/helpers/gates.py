"""Gate: a file with the step at which a test blocks the training of a worker."""

import os
import time

import tensorflow.compat.v1 as tf

_POLL_SECS = 0.01


def install_gate(path):
    """Let each monitored session wait at the step in a file, before all other hooks."""
    base = tf.train.MonitoredSession.__base__
    init = base.__init__

    def init_with_gate(session, creator, hooks, *arguments, **options):
        init(session, creator, [_Gate(path), *hooks], *arguments, **options)

    base.__init__ = init_with_gate


class _Gate(tf.train.SessionRunHook):
    """Hook that blocks at the step in a file, and prints the blocked step."""

    def __init__(self, path):
        self._path = path

    def begin(self):
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        step = run_context.session.run(self._step)
        if step >= _read(self._path):
            print(f'Blocked at step {step}', flush=True)
        while step >= _read(self._path):
            time.sleep(_POLL_SECS)


def _read(path):
    with open(path) as file:
        return int(file.read())


def open_to(path, step):
    """Open the gate up to a step."""
    with open(path + '.new', 'w') as file:
        file.write(str(step))
    os.replace(path + '.new', path)
