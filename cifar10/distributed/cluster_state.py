"""Cluster state: variables that describe the run to all tasks.

Each parameter server, or in an all-reduce the chief, holds a copy. A copy ends with its process.
"""

import contextlib
import dataclasses
import json
import reprlib
import threading
from typing import NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from cifar10.distributed.variable_placement import shared_variable
from cifar10.errors import UserError


class ClusterState(NamedTuple):
    """One task's copy of the cluster state."""

    run_config: str = ''  # of the chief; equal for all workers
    # Changes with each initialization by the chief; 0 during an initialization
    generation: int = 0
    step: int = 0  # of the newest update
    heartbeat: int = 0  # changes during local steps
    finished: int = 0  # 1 after the last update is saved
    left: Sequence[int] = ()  # 1 for each worker that has closed its session


def variable(state_task, name, initial=0):
    """Return a variable of the cluster state in the default graph.

    Args:
      state_task: the Task that holds the variable.
      name: a field of ClusterState.
      initial: the initial value.
    """
    initial = tf.constant(initial, tf.string if name == 'run_config' else tf.int64)
    full_name = f'{state_task.job_name}_{state_task.index}/cluster_state/{name}'
    return shared_variable(state_task.device, full_name, initial)


def token_queue(state_task, worker_task):
    """Return the queue of tokens that wake a waiting worker."""
    with tf.device(state_task.device):
        return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f'tokens_{worker_task.index}')


class ClusterStateVariables:
    """Access to the cluster state on all its tasks, in a session of its own."""

    def __init__(self, state_tasks, worker_tasks, connect):
        """Build the graph.

        Args:
          state_tasks: the Tasks that hold the cluster state.
          worker_tasks: the Tasks of the workers.
          connect: a function that makes a tf.Session for a graph.
        """
        self._first_task, self._worker_tasks = state_tasks[0], worker_tasks
        self._connect, self._session = connect, None
        self._empty = ClusterState(left=[0] * len(worker_tasks))._asdict()
        with tf.Graph().as_default() as self._graph:
            self._variables = [
                {name: variable(state_task, name, value) for name, value in self._empty.items()}
                for state_task in state_tasks
            ]

    def initialize(self):
        """Write the initial ClusterState to each task."""
        self.write(**self._empty)

    def write(self, **values):
        """Write these fields of ClusterState to every task."""
        self._run(
            lambda session: [
                variables[name].load(value, session)
                for variables in self._variables
                for name, value in values.items()
            ]
        )

    def set_left(self, worker_task, value):
        """Write `left` of a worker to every task."""
        self._run(
            lambda session: session.run(
                [
                    tf.scatter_update(variables['left'], worker_task.index, value)
                    for variables in self._variables
                ]
            )
        )

    def read(self):
        """Return a ClusterState for each task.

        Raises:
          tf.errors.OpError: a task is lost, or has not initialized its variables.
        """
        return [
            ClusterState(
                values.pop('run_config').decode(), **{n: v.tolist() for n, v in values.items()}
            )
            for values in self._run(lambda session: session.run(self._variables))
        ]

    def enqueue_tokens(self):
        """Wake every waiting worker to read the cluster state."""
        self._run(
            lambda session: session.run(
                [token_queue(self._first_task, task).enqueue(0) for task in self._worker_tasks]
            )
        )

    def _run(self, function):
        """Return function(session); replace the session after an error."""
        if self._session is None:
            self._session = self._connect(self._graph)
        try:
            with self._graph.as_default():
                return function(self._session)
        except tf.errors.OpError:
            # Python closes a session with its last reference. That can wait until a lost task is
            # back, so this thread must not do it.
            threading.Thread(target=_close, args=[self._session], daemon=True).start()
            self._session = None
            raise


def _close(session):
    with contextlib.suppress(tf.errors.OpError):  # The tasks may be lost.
        session.close()


def run_config(job, strategy, data_checksum):
    """Return the configuration that must be equal for all workers, as JSON."""
    return json.dumps(
        dict(
            dataclasses.asdict(job.hparams),
            num_towers=job.num_towers,
            max_steps=job.settings.max_steps,
            seed=job.settings.seed,
            deterministic=job.settings.deterministic,
            class_names=job.dataset.class_names,
            num_examples=job.num_examples,
            data_checksum=data_checksum,
            **strategy._asdict(),
        )
    )


def adopt_hparams(job, names, chief_config):
    """Return the Job with the chief's values of the named hyperparameters."""
    chief_values = json.loads(chief_config)
    return job._replace(
        hparams=dataclasses.replace(job.hparams, **{name: chief_values[name] for name in names})
    )


def check_run_config(name, own_config, chief_config):
    """Compare the run_config of the worker `name` with the chief's.

    Raises:
      UserError: a value differs.
    """
    chief_values = json.loads(chief_config)
    for field, value in json.loads(own_config).items():
        if chief_values.get(field) != value:
            raise UserError(
                f'The run has {field} {reprlib.repr(chief_values.get(field))}, but {name} has {reprlib.repr(value)}',
                'give all workers the same flags and data',
            )
