"""The cluster state: variables that describe the run to all tasks.

It includes the configuration that all workers must share. Each parameter server holds a copy, or
the chief if there is none. A copy lives as long as that process.
"""

import json
import reprlib
from typing import NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from cifar10.distributed.variable_placement import shared_variable
from cifar10.errors import UserError


class ClusterState(NamedTuple):
    """The state of a run, as one task holds it."""

    run_config: str = ''  # what all workers must have in common, as the chief has it
    # a new number each time that the chief has given the variables their values; 0 while it does so
    generation: int = 0
    step: int = 0  # of the newest update
    heartbeat: int = 0  # changes while a worker makes steps of which the others see nothing
    finished: int = 0  # 1 after the last update, when everything is saved
    left: Sequence[int] = ()  # 1 for each worker that has no session any more


def variable(state_task, name, initial=0):
    """Return one of the variables of the cluster state, in the default graph.

    Args:
      state_task: the Task that holds it.
      name: a field of ClusterState.
      initial: a value of the type of the variable.
    """
    initial = tf.constant(initial, tf.string if name == 'run_config' else tf.int64)
    full_name = f'{state_task.job_name}_{state_task.index}/cluster_state/{name}'
    return shared_variable(state_task.device, full_name, initial)


def token_queue(state_task, worker):
    """Return the queue on the first task by which the chief wakes a waiting worker."""
    with tf.device(state_task.device):
        return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f'tokens_{worker.index}')


class ClusterStateVariables:
    """The cluster state on all its tasks, with a session separate from training."""

    def __init__(self, state_tasks, workers, connect):
        """Build the graph.

        Args:
          state_tasks: the Tasks that hold the cluster state.
          workers: the Tasks of the workers.
          connect: a function that makes a tf.Session for a graph.
        """
        self._first_task, self._workers = state_tasks[0], workers
        self._connect, self._session = connect, None
        self._empty = ClusterState(left=[0] * len(workers))._asdict()
        with tf.Graph().as_default() as self._graph:
            self._variables = [
                {name: variable(state_task, name, value) for name, value in self._empty.items()}
                for state_task in state_tasks
            ]

    def initialize(self):
        """Write an empty ClusterState to each task."""
        self.write(**self._empty)

    def write(self, **values):
        """Write values of fields of ClusterState to every task."""
        self._run(
            lambda session: [
                variables[name].load(value, session)
                for variables in self._variables
                for name, value in values.items()
            ]
        )

    def set_left(self, worker, value):
        """Write to every task whether a worker has no session any more."""
        self._run(
            lambda session: session.run(
                [
                    tf.scatter_update(variables['left'], worker.index, value)
                    for variables in self._variables
                ]
            )
        )

    def read(self):
        """Return a ClusterState for each task.

        Raises:
          tf.errors.OpError: a task is gone, or has not initialized its variables yet.
        """
        return [
            ClusterState(
                values.pop('run_config').decode(), **{n: v.tolist() for n, v in values.items()}
            )
            for values in self._run(lambda session: session.run(self._variables))
        ]

    def enqueue_tokens(self):
        """Wake every worker that waits for an update, so that it reads the cluster state."""
        self._run(
            lambda session: session.run(
                [token_queue(self._first_task, worker).enqueue(0) for worker in self._workers]
            )
        )

    def _run(self, function):
        """Call function(session); after an error the next call makes another session."""
        if self._session is None:
            self._session = self._connect(self._graph)
        try:
            with self._graph.as_default():
                return function(self._session)
        except tf.errors.OpError:
            self._session = None  # not closed: that would wait for a task that is gone
            raise


def run_config(job, strategy, data_checksum):
    """Return the configuration that all workers must share, as JSON with the names of flags.

    It has the hyperparameters and the data of a training.Job, and the Strategy.
    """
    return json.dumps(
        dict(
            job.hparams._asdict(),
            num_towers=job.num_towers,
            max_steps=job.max_steps,
            seed=job.seed,
            deterministic=job.deterministic,
            num_examples=job.num_examples,
            class_names=job.dataset.class_names,
            data_checksum=data_checksum,
            **strategy._asdict(),
        )
    )


def adopt_hparams(job, names, chief_config):
    """Return the Job with the chief's values of the named hyperparameters."""
    chief_values = json.loads(chief_config)
    return job._replace(
        hparams=job.hparams._replace(**{name: chief_values[name] for name in names})
    )


def check_run_config(name, own_config, chief_config):
    """Compare a worker's run_config with the chief's.

    Args:
      name: of this worker.
      own_config: of this worker.
      chief_config: of the run.

    Raises:
      UserError: names the first value in which they differ.
    """
    chief_values = json.loads(chief_config)
    for field, value in json.loads(own_config).items():
        if chief_values.get(field) != value:
            raise UserError(
                f'The run has {field} {reprlib.repr(chief_values.get(field))}, but {name} has {reprlib.repr(value)}: give '
                'all workers the same flags and data'
            )
