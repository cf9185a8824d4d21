"""The state of a run: boards, which are variables on the tasks that hold the state of the network,
and by which all tasks know what the run is at; and what all workers must have in common.

Each parameter server holds a board of its own, or the chief where there is none. A board lives as
long as that process.
"""

import json
import reprlib
from typing import NamedTuple, Sequence

import tensorflow.compat.v1 as tf

from cifar10.distributed.variable_placement import shared_variable
from cifar10.errors import UserError


class Notice(NamedTuple):
    """What a board says."""

    agreement: str = ''  # what all workers must have in common, as the chief has it
    # a new number each time that the chief has given the variables their values; 0 while it does so
    generation: int = 0
    step: int = 0  # of the newest update
    beat: int = 0  # changes while a worker makes steps of which the others see nothing
    finished: int = 0  # 1 after the last update, when everything is saved
    gone: Sequence[int] = ()  # 1 for each worker that has no session any more


def variable(host, name, initial=0):
    """One of a board's variables, in the default graph.

    Args:
      host: the Task that holds the board.
      name: a field of Notice.
      initial: a value of the type of the variable.
    """
    initial = tf.constant(initial, tf.string if name == 'agreement' else tf.int64)
    return shared_variable(host.device, '%s_%d/board/' % host + name, initial)


def wake_queue(host, worker):
    """The queue on the first host into which the chief puts something whenever a worker that waits
    should look again."""
    with tf.device(host.device):
        return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name='wake_%d' % worker.index)


class Boards:
    """The boards of all hosts, read and written in sessions that are apart from training."""

    def __init__(self, hosts, workers, connect):
        """Builds the graph.

        Args:
          hosts: the Tasks that hold a board.
          workers: the Tasks of the workers.
          connect: a function that makes a tf.Session for a graph.
        """
        self._host, self._workers = hosts[0], workers
        self._connect, self._session = connect, None
        self._empty = Notice(gone=[0] * len(workers))._asdict()
        with tf.Graph().as_default() as self._graph:
            self._variables = [
                {name: variable(host, name, value) for name, value in self._empty.items()}
                for host in hosts
            ]

    def open(self):
        """Writes an empty Notice on each board."""
        self.write(**self._empty)

    def write(self, **values):
        """Writes values of fields of Notice on every board."""
        self._run(
            lambda session: [
                board[name].load(value, session)
                for board in self._variables
                for name, value in values.items()
            ]
        )

    def set_gone(self, worker, value):
        """Writes on every board whether a worker has no session any more."""
        self._run(
            lambda session: session.run(
                [tf.scatter_update(board['gone'], worker.index, value) for board in self._variables]
            )
        )

    def read(self):
        """A Notice for each board.

        Raises:
          tf.errors.OpError: a host is not there, or has not opened its board yet.
        """
        return [
            Notice(values.pop('agreement').decode(), **{n: v.tolist() for n, v in values.items()})
            for values in self._run(lambda session: session.run(self._variables))
        ]

    def wake(self):
        """Has every worker that waits for an update look at the board."""
        self._run(
            lambda session: session.run(
                [wake_queue(self._host, worker).enqueue(0) for worker in self._workers]
            )
        )

    def _run(self, function):
        """Calls function(session); after an error the next call makes another session."""
        if self._session is None:
            self._session = self._connect(self._graph)
        try:
            with self._graph.as_default():
                return function(self._session)
        except tf.errors.OpError:
            self._session = None  # not closed: that would wait for a host that is gone
            raise


def agreement(job, strategy, data_checksum):
    """The hyperparameters, the Strategy and the data of a training.Job, by the names of flags, as
    JSON."""
    return json.dumps(
        dict(
            job.hparams._asdict(),
            num_towers=job.num_towers,
            max_steps=job.max_steps,
            seed=job.seed,
            deterministic=job.deterministic,
            num_examples=job.num_examples,
            class_names=job.data.class_names,
            data_checksum=data_checksum,
            **strategy._asdict(),
        )
    )


def adopted(job, names, theirs):
    """Returns the Job with the hyperparameters of these names as the run has them, by its text."""
    run = json.loads(theirs)
    return job._replace(hparams=job.hparams._replace(**{name: run[name] for name in names}))


def check_agreement(name, ours, theirs):
    """Compares two texts.

    Args:
      name: of this worker.
      ours, theirs: the texts of this worker and of the run.

    Raises:
      UserError: names the first value in which they differ.
    """
    run = json.loads(theirs)
    for field, value in json.loads(ours).items():
        if run.get(field) != value:
            raise UserError(
                'The run has %s %s, but %s has %s: give all workers the same flags and data'
                % (field, reprlib.repr(run.get(field)), name, reprlib.repr(value))
            )
