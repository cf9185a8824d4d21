"""The notice board of a run: variables on the tasks that hold its state, by which all tasks know
what the run is at.

Each parameter server holds a board of its own, or the chief where there is none. A board lives as
long as that process.
"""

from typing import NamedTuple, Tuple

import tensorflow.compat.v1 as tf


class Notice(NamedTuple):
    """What a board says."""

    agreement: str = ''  # what all workers must have in common, as the chief has it
    # a new number each time that the chief has given the variables their values; 0 while it does so
    generation: int = 0
    step: int = 0  # of the newest update
    beat: int = 0  # changes while a worker makes steps of which the others see nothing
    finished: int = 0  # 1 after the last update, when everything is saved
    gone: Tuple[int, ...] = ()  # 1 for each worker that has no session any more


def variable(host, name, initial=0):
    """One of a board's variables, in the default graph.

    Args:
      host: the Task that holds the board.
      name: a field of Notice.
      initial: a value of the type of the variable.
    """
    initial = tf.constant(initial, tf.int64 if isinstance(initial, int) else tf.string)
    with tf.device(host.device), tf.variable_scope('%s_%d/board' % host, reuse=tf.AUTO_REUSE):
        return tf.get_variable(
            name,
            dtype=initial.dtype,
            initializer=initial,
            trainable=False,
            collections=[],
            use_resource=True,
        )


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
        self._connect = connect
        self._session = None
        with tf.Graph().as_default() as self._graph:
            self._variables = [
                dict(
                    {
                        name: variable(host, name, value)
                        for name, value in Notice()._asdict().items()
                        if name != 'gone'
                    },
                    **{
                        'gone_%d' % worker.index: variable(host, 'gone_%d' % worker.index)
                        for worker in workers
                    },
                )
                for host in hosts
            ]
            self._values = [
                {name: held.read_value() for name, held in board.items()}
                for board in self._variables
            ]
            self._wake = [
                wake_queue(hosts[0], worker).enqueue(tf.constant(0, tf.int64)) for worker in workers
            ]

    def open(self):
        """Writes the first Notice on each board."""
        self.write(agreement='', generation=0, step=0, beat=0, finished=0)
        self.write(**{name: 0 for name in self._variables[0] if name.startswith('gone_')})

    def write(self, **values):
        """Writes values on every board: of fields of Notice, or gone_0, gone_1 and so on."""
        self._run(
            lambda session: [
                board[name].load(value, session)
                for board in self._variables
                for name, value in values.items()
            ]
        )

    def read(self):
        """A Notice for each board.

        Raises:
          tf.errors.OpError: a host is not there, or has not opened its board yet.
        """
        return [_notice(values) for values in self._run(lambda session: session.run(self._values))]

    def wake(self):
        """Has every worker that waits for an update look at the board."""
        self._run(lambda session: session.run(self._wake))

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


def _notice(values):
    gone = sorted(
        (int(name[len('gone_') :]), int(value))
        for name, value in values.items()
        if name.startswith('gone_')
    )
    return Notice(
        values['agreement'].decode(),
        int(values['generation']),
        int(values['step']),
        int(values['beat']),
        int(values['finished']),
        tuple(value for _, value in gone),
    )
