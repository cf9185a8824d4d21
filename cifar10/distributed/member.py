"""A worker among the others of its cluster: it joins them, joins again when it has lost somebody,
and leaves."""

import contextlib
import itertools
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10.data import verification
from cifar10.distributed import agreement, peers, watchdog
from cifar10.distributed.board import Boards
from cifar10.distributed.cluster import CONNECTING, FILLING, JOINING, TRAINING
from cifar10.distributed.join_hook import BegunAnew
from cifar10.errors import MissingOutputs, reason, warn
from cifar10.runs import signals

_LOOK_SECS = 0.1
_RETRY_SECS = 1
_GOODBYE_SECS = 3
_BEAT_SECS = 5
_ALONE_SECS = 10  # that a chief whose run is complete waits for others who would like to know
# What TensorFlow's runtime raises when a peer is gone, or has begun anew.
_LOSSES = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
    tf.errors.DeadlineExceededError,
)
# What a tf.train.SessionManager raises as a RuntimeError when a parameter server has lost its
# variables since the worker looked.
_NOT_READY = 'Init operations did not make model ready'
# to join without an update, before the error is raised, or the timer is not restarted any more
_ATTEMPTS = 5


class Member:
    """A worker that knows by the boards what the run is at."""

    def __init__(self, station, strategy, job, adopts=()):
        """Makes a worker.

        Args:
          station: its Station.
          strategy: a Strategy.
          job: a training.Job.
          adopts: names of the hyperparameters that a worker takes from the chief.
        """
        self.station, self.strategy, self.job = station, strategy, job
        self.cluster, self.task = station.cluster, station.task
        self.hosts = self.cluster.servers or self.cluster.workers[:1]  # that hold the boards
        self._boards = Boards(
            self.hosts,
            self.cluster.workers,
            lambda graph: station.connect(graph, self.hosts + [self.task]),
        )
        self.generation, self._next_beat = 0, 0
        self._adopts = adopts
        # losses, and successful attempts to join, since the last update
        self._fruitless = self._joinings = 0
        self._has_compared = False  # whether the addresses of the hosts are known to be the same
        self._data_checksum = verification.total_checksum(job.data.train)
        # The tasks without which this worker makes no update, and their cards when it joined them.
        self._needed = [
            task
            for task in (self.hosts if strategy.has_servers else self.cluster.workers)
            if task != self.task
        ]
        self._joined = {}
        if self.hosts == [self.task]:
            self._boards.open()

    @property
    def _agreement(self):
        return agreement.text(self.job, self.strategy, self._data_checksum)

    def persevere(self, attempt):
        """Joins and trains, again whenever others were lost, and then tells them that this worker
        leaves.

        With all-reduce, collectives cannot be used again in a process that has lost a peer: it
        ends, see statuses.

        Args:
          attempt: a function that joins and trains, and returns None when the run has come to its
            end, or the signal that has stopped it; its argument is whether it is the first attempt.

        Raises:
          signals.Interrupted: a signal has stopped the run, which is saved.
          MissingOutputs: the run has come to its end, but its chief could not write something.
        """
        missing = None
        for is_first in itertools.chain([True], itertools.repeat(False)):
            try:
                stopped_by = attempt(is_first)
                if self.generation and not self.task.is_chief:
                    self._await_chief()
                break
            except MissingOutputs as error:  # of the chief; the others need not know
                missing, stopped_by = error, error.stopped_by
                break
            except BegunAnew:
                print('The chief has restarted the run: joining it', flush=True)
                self.station.set_phase(CONNECTING)
            except _LOSSES + (RuntimeError,) as error:
                self._explain_loss(error)
        self.station.watchdog.rest()
        if self.generation:
            farewell = threading.Thread(
                target=self._say_goodbye, args=(stopped_by is None,), daemon=True
            )
            farewell.start()
            # all is saved: nobody needs to wait for a server that is gone
            farewell.join(_GOODBYE_SECS)
        if stopped_by:
            if missing:
                warn(missing)
            raise signals.Interrupted(stopped_by)
        if self.hosts == [self.task]:  # the others read the board of this process
            self.station.await_departures(self._boards)
        if missing:
            raise missing

    def _await_chief(self):
        """Waits until the chief has saved the last update: if it dies before, it may need this
        worker to make that update again.

        Raises:
          BegunAnew: it did, and is back.
        """
        while True:
            notices = self._read()
            if notices and notices[0].finished:
                return
            if notices and _is_ready(notices) and notices[0].generation != self.generation:
                raise BegunAnew
            if not notices and not self.strategy.has_servers:
                watchdog.end(
                    'Lost the chief before it had saved the last update: start the job again, it goes on from its last '
                    'checkpoint'
                )
            time.sleep(_LOOK_SECS)

    def _explain_loss(self, error):
        """Tells why the worker joins again; raises the error if it is no loss, or ends the process
        if that helps no more."""
        if isinstance(error, RuntimeError) and _NOT_READY not in str(error) or not self._needed:
            raise error
        self.station.set_phase(CONNECTING)
        cards = self.station.read_cards(self._needed)
        lost = [task for task, card in cards.items() if isinstance(card, str)]
        names = peers.absent(self.cluster, {task: cards[task] for task in lost}) or [
            '%s (%s: restarted)' % (task, self.cluster.address(task))
            for task, card in cards.items()
            if getattr(self._joined.get(task), 'incarnation', None) not in (None, card.incarnation)
        ]
        cause = 'Lost ' + (
            ', '.join(names)
            or 'the connection to %s (%s)'
            % (' or '.join(map(self.cluster.named, self._needed)), reason(error))
        )
        if not self.strategy.has_servers:
            watchdog.end(cause + ': start the job again, it goes on from its last checkpoint')
        self._fruitless += 1
        # gRPC waits before it connects again to a task that was away
        is_waiting = isinstance(error, tf.errors.UnavailableError)
        if self._fruitless > _ATTEMPTS and not is_waiting and not lost:
            raise error
        print(cause + ': joining again', flush=True)
        time.sleep(_RETRY_SECS if self._fruitless > 1 else 0)

    def _say_goodbye(self, is_over):
        with contextlib.suppress(tf.errors.OpError):  # they may have gone already
            if is_over and self.task.is_chief:
                self._boards.write(agreement=self._agreement, finished=1)
                self._boards.write(generation=self.generation)
            self._boards.write(**{'gone_%d' % self.task.index: 1})

    def join(self, run, begins=False, has_ended=lambda: False):
        """Waits for those without whom this worker cannot begin, and joins them.

        Args:
          run: the RunDirectory of the chief, None for other workers.
          begins: whether the chief gives the variables their values even if a run is under way that
            would go on without it.
          has_ended: a function that returns whether the directory of this worker holds a run that
            has ended.

        Returns:
          Whether there may be something to do.

        Raises:
          UserError: the others have other addresses or hyperparameters.
        """
        notices, alone_until = self._read(), time.monotonic() + self._patience()
        while not (notices and (self.task.is_chief or _is_ready(notices))):
            if time.monotonic() >= alone_until and has_ended():
                return self._go_home(notices)
            time.sleep(_LOOK_SECS)
            notices = self._read()
        if notices[0].finished and not self.task.is_chief:
            return self._go_home(notices)
        self._joinings += 1
        # Without the limit, a task that joins again and again would never end.
        self.station.join(JOINING, restarts_timer=self._joinings <= _ATTEMPTS)
        is_under_way, is_back = _is_ready(notices), bool(self.generation)
        self.publishes = self.task.is_chief and (
            begins or self.strategy.needs_all or not is_under_way
        )
        if is_under_way:
            if not self.task.is_chief:
                self.job = agreement.adopted(self.job, self._adopts, notices[0].agreement)
            agreement.check(self.cluster.named(self.task), self._agreement, notices[0].agreement)
        if self.publishes:
            self.generation = time.time_ns() // 1000
            self.first_step = run.first_step
            self._boards.write(generation=0, step=self.first_step)
        else:
            self.generation, self.first_step = notices[0].generation, notices[0].step
            if self.first_step or is_back:
                print('Joining the run at step %d' % self.first_step, flush=True)
            self._boards.write(**{'gone_%d' % self.task.index: 0})
        return True

    def _patience(self):
        """For how many seconds the worker waits for others although the run in its directory has
        ended."""
        if self.task.is_chief:
            return _ALONE_SECS
        # Elsewhere the directory of the chief can be another one.
        return 0 if peers.is_here(self.cluster.worker[0]) else self.station.timeouts.connect / 2

    def _go_home(self, notices):
        print('Nothing to do: the run has ended', flush=True)
        self.generation = 0
        if notices:
            with contextlib.suppress(tf.errors.OpError):  # the hosts may end meanwhile
                self._boards.write(**{'gone_%d' % self.task.index: 1})
        return False

    def _read(self):
        """The notices on all boards, or None while some host is not there.

        Raises:
          UserError: a host has other addresses.
        """
        others = [host for host in self.hosts if host != self.task]
        missing = (
            peers.unreachable(self.cluster, others)
            if self._has_compared
            else [
                host
                for host, card in self.station.read_cards(others).items()
                if isinstance(card, str)
            ]
        )
        self._has_compared = not missing
        try:
            return self._boards.read() if self._has_compared else None
        except tf.errors.OpError:
            self._has_compared = False
            return None

    def has_joined(self):
        """The worker has the values of the variables, and fills its queue."""
        self._joined = self.station.read_cards(self._needed)
        self.station.set_phase(FILLING)

    def trains(self):
        """The worker begins its first step."""
        self.station.set_phase(TRAINING)

    def publish(self):
        """The chief tells the others that the variables have their values."""
        self._boards.write(agreement=self._agreement, finished=0)
        self._boards.write(**{'gone_%d' % worker.index: 0 for worker in self.cluster.workers})
        self._boards.write(generation=self.generation)
        self._boards.wake()

    def made_update(self):
        """The worker has taken part in an update."""
        self._fruitless = self._joinings = 0
        self.station.made_progress()

    def made_local_step(self):
        """The worker has made a step of which the others see nothing; it tells them now and then
        that it does."""
        self.station.made_progress()
        if time.monotonic() > self._next_beat:
            self._next_beat = time.monotonic() + _BEAT_SECS
            self._boards.write(beat=time.time_ns())


def _is_ready(notices):
    """Whether all hosts have values of the same generation."""
    return len({notice.generation for notice in notices}) == 1 and notices[0].generation != 0
