"""Hooks by which a test observes and blocks the training of a worker."""

import hashlib
import os
import time

import tensorflow.compat.v1 as tf

from cifar10.distributed import server, task_context

_POLL_SECS = 0.01


def observe(gate=None, digests=False, listens_at=None):
    """Patch the sessions or the server of this process.

    Args:
      gate: a file with the step at which the worker is blocked.
      digests: True to print a digest of all variables after each step.
      listens_at: another port of its server, as if its host were another one.
    """
    if listens_at:
        _move_to_another_host(listens_at)
    observers = ([_Gate(gate)] if gate else []) + ([_Digests()] if digests else [])
    if observers:
        add_hooks(observers)


def add_hooks(hooks):
    """Put these hooks before all others of each monitored session."""
    base = tf.train.MonitoredSession.__base__
    init = base.__init__

    def init_with_hooks(session, creator, others, *arguments, **options):
        init(session, creator, hooks + others, *arguments, **options)

    base.__init__ = init_with_hooks


def _move_to_another_host(port):
    """Make the server listen at another port than the task's own."""
    make_server = tf.train.Server

    def make_moved_server(spec, job, index, **options):
        spec[job][index] = f'localhost:{port}'
        return make_server(spec, job, index, **options)

    tf.train.Server = make_moved_server
    server._check_port = lambda port: None
    task_context._DNS_UPDATE_SECS = 1


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


class _Digests(tf.train.SessionRunHook):
    """Hook that prints a digest of all variables after each step."""

    def begin(self):
        self._variables = sorted(tf.global_variables(), key=lambda variable: variable.op.name)

    def after_run(self, run_context, run_values):
        values = run_context.session.run(self._variables)
        digest = hashlib.sha1(b''.join(value.tobytes() for value in values)).hexdigest()
        print(f'Digest: {digest}', flush=True)
