"""What a test sees and holds of the training of a worker, beyond its lines."""

import hashlib
import os
import time

import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.distributed import server, task_context
from tests.helpers.parted_graphs import PartitionGraphs

_POLL_SECS = 0.01


def observe(gate=None, digests=False, transfers=False, listens_at=None):
    """Changes training.session for this process, or its server.

    Args:
      gate: a file that holds the step before which the worker stays until another number is written
        there.
      digests: whether a line after each step tells a digest of all variables.
      transfers: whether one tells the bytes that the devices of this process have sent to each
        other.
      listens_at: the port at which its server listens in place of the given one, as if its host
        were another one.
    """
    if listens_at:
        _move_to_another_host(listens_at)
    observers = ([_Gate(gate)] if gate else []) + ([_Digests()] if digests else [])
    observers += [_Transfers()] if transfers else []
    training.session = with_hooks(observers)


def with_hooks(hooks):
    """Returns a training.session with further hooks, which come before all others."""
    make_session = training.session

    def session(step, job, run, saver, summary_writer, settings=None):
        settings = settings or training.SessionSettings(job.session_config)
        settings = settings._replace(hooks=hooks + list(settings.hooks))
        return make_session(step, job, run, saver, summary_writer, settings)

    return session


def _move_to_another_host(port):
    """Makes the server listen at this port. What connects to the task's own address reaches another
    process, or nobody."""
    make_server = tf.train.Server

    def make_moved_server(spec, job, index, **options):
        spec[job][index] = f'localhost:{port}'
        return make_server(spec, job, index, **options)

    tf.train.Server = make_moved_server
    server._check_port = lambda port: None
    task_context._DNS_UPDATE_SECS = 1


class _Gate(tf.train.SessionRunHook):
    """Lets no step begin from a global step that is not below the number in a file; a line tells
    where it waits."""

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
    """The number in the file of a gate."""
    with open(path) as file:
        return int(file.read())


def write(path, step):
    """Lets the workers go up to a step."""
    with open(path + '.new', 'w') as file:
        file.write(str(step))
    os.replace(path + '.new', path)


class _Digests(tf.train.SessionRunHook):
    """Prints a digest of the bytes of all variables after each step."""

    def begin(self):
        self._variables = sorted(tf.global_variables(), key=lambda variable: variable.op.name)

    def after_run(self, run_context, run_values):
        values = run_context.session.run(self._variables)
        digest = hashlib.sha1(b''.join(value.tobytes() for value in values)).hexdigest()
        print(f'Digest: {digest}', flush=True)


class _Transfers(PartitionGraphs):
    """Prints the bytes of tensors with several elements that the devices of this process have sent
    to each other in each step."""

    def after_run(self, run_context, run_values):
        super().after_run(run_context, run_values)
        transferred = sum(
            size
            for ends, sent in self.transfers().items()
            if len({end.split('/device:')[0] for end in ends}) == 1 and '/job:worker' in ends[0]
            for count, size in sent
            if count > 1
        )
        print(f'Transferred: {transferred} bytes', flush=True)
