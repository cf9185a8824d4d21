"""A worker of a cluster: it joins the others, trains, joins again after a loss, and leaves."""

import contextlib
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10 import placement
from cifar10.data import verification
from cifar10.distributed import (
    allreduce,
    asynchronous,
    averaging,
    cluster_state,
    server,
    synchronous,
    task_context,
    variable_placement,
)
from cifar10.distributed.cluster import CONNECTING, FILLING, JOINING, TRAINING
from cifar10.errors import MissingOutputs, reason, warn
from cifar10.system import signals
from cifar10.training import SessionSettings

_UPDATES = {
    'sync': synchronous.update,
    'allreduce': allreduce.update,
    'async': asynchronous.update,
    'average': averaging.update,
}
_LOOK_SECS = 0.1
_RETRY_SECS = 1
_GOODBYE_SECS = 3
_BEAT_SECS = 5
_ALONE_SECS = 10  # that a chief whose run is complete waits for others who would like to know
# What a tf.train.SessionManager raises as a RuntimeError when a parameter server has lost its
# variables since the worker looked.
_NOT_READY = 'Init operations did not make model ready'
# to join without an update, before the error is raised, or the timer is not restarted any more
_ATTEMPTS = 5
_RESTART_JOB = ': start the job again, it goes on from its last checkpoint'


class BegunAnew(Exception):
    """The chief has given the variables other values, those of a checkpoint."""


class Worker(tf.train.SessionRunHook):
    """A worker that trains, and knows by the boards what the run is at; a hook of its own session.

    Attributes:
      hosts: the Tasks that hold the boards.
      generation: the number of the variables' values, see run_state.Notice; 0 before it has joined.
      initializes_variables: whether this worker gives the variables their values.
      run: the ChiefRun or WorkerRun that it has joined.
    """

    def __init__(self, station, strategy, job, adopts=()):
        """Makes the worker of a Station and a Strategy, which adopts the hyperparameters of these
        names from the chief."""
        self.station, self.strategy, self.job = station, strategy, job
        self.cluster, self.task = station.cluster, station.task
        self.hosts = self.cluster.servers or self.cluster.workers[:1]
        self._boards = cluster_state.Boards(
            self.hosts,
            self.cluster.workers,
            lambda graph: station.connect(graph, self.hosts + [self.task]),
        )
        self.generation = self._next_beat = 0
        self._adopts = adopts
        self._joinings = 0  # since the last update
        self._cards = {}  # of the hosts, if all of them were there with the same addresses
        self._data_checksum = verification.total_checksum(job.data.train)
        if self.hosts == [self.task]:
            self._boards.open()

    @property
    def _agreement(self):
        return cluster_state.agreement(self.job, self.strategy, self._data_checksum)

    def run_with_recovery(self, attempt):
        """Joins and trains, again whenever others were lost, and then tells them that it leaves.

        Collectives cannot be used again after a loss: with all-reduce the process ends.

        Args:
          attempt: a function that joins and trains, and returns None at the end of the run, or the
            signal that has stopped it; its argument is whether it is the first attempt.

        Raises:
          signals.Interrupted: a signal has stopped the run, which is saved.
          MissingOutputs: the run has come to its end, but its chief could not write something.
        """
        missing, is_first = None, True
        while True:
            try:
                stopped_by = attempt(is_first)
                if self.generation and not self.task.is_chief:
                    self._await_chief()
                break
            except MissingOutputs as error:  # of the chief; the others need not know
                missing, stopped_by = error, error.stopped_by
                break
            except BegunAnew:
                print('The chief has restarted the run: joining it')
                self.station.set_phase(CONNECTING)
            except server.LOSSES + (RuntimeError,) as error:
                self._explain_loss(error)
            is_first = False
        self.station.watchdog.rest()
        if self.generation:
            farewell = threading.Thread(
                target=self._say_goodbye, args=[not stopped_by], daemon=True
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
        """Waits until the chief has saved the last update, which it may have to make again.

        Raises:
          BegunAnew: it did, and is back.
        """
        while True:
            notices = self._read()
            if notices and notices[0].finished:
                return
            if notices and _is_ready(notices) and notices[0].generation != self.generation:
                raise BegunAnew
            if not notices and not self.cluster.ps:
                task_context.end(
                    'Lost the chief before it had saved the last update' + _RESTART_JOB
                )
            time.sleep(_LOOK_SECS)

    def _explain_loss(self, error):
        """Tells why the worker joins again; raises an error that is no loss, or ends all."""
        # Without these tasks, this worker makes no update.
        needed = [
            task for task in self.cluster.servers or self.cluster.workers if task != self.task
        ]
        if isinstance(error, RuntimeError) and _NOT_READY not in str(error) or not needed:
            raise error
        self.station.set_phase(CONNECTING)
        cards = self.station.read_cards(needed)
        lost = {task: card for task, card in cards.items() if isinstance(card, str)}
        restarted = {
            task: 'restarted'
            for task, card in self._cards.items()
            if not lost and card.incarnation != cards[task].incarnation
        }
        self._cards = {}
        cause = 'Lost ' + (
            ', '.join(server.absent(self.cluster, lost or restarted))
            or 'the connection to %s (%s)'
            % (' or '.join(map(self.cluster.named, needed)), reason(error))
        )
        if not self.cluster.ps:
            task_context.end(cause + _RESTART_JOB)
        # gRPC waits before it connects again to a task that was away
        is_waiting = isinstance(error, tf.errors.UnavailableError)
        if self._joinings > _ATTEMPTS and not is_waiting and not lost:
            raise error
        print(cause + ': joining again')
        time.sleep(_RETRY_SECS if self._joinings > 1 else 0)

    def _say_goodbye(self, is_over):
        with contextlib.suppress(tf.errors.OpError):  # they may have gone already
            if is_over and self.task.is_chief:
                self._boards.write(agreement=self._agreement, finished=1)
                self._boards.write(generation=self.generation)
            self._boards.set_gone(self.task, 1)

    def join(self, run, begins=False, has_ended=lambda: False):
        """Waits for those without whom this worker cannot begin, and joins them.

        Args:
          run: a ChiefRun or a WorkerRun; its first_step becomes the step at which it joins.
          begins: whether the chief begins anew even if a run goes on without it.
          has_ended: returns whether the directory of this worker holds a run that has ended.

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
        newest, is_under_way = notices[0], _is_ready(notices)
        if newest.finished and not self.task.is_chief:
            return self._go_home(notices)
        self._joinings += 1
        # Without the limit, a task that joins again and again would never end.
        self.station.join(JOINING, restarts_timer=self._joinings <= _ATTEMPTS)
        self.run = run
        self.initializes_variables = self.task.is_chief and (
            begins or self.strategy.needs_all or not is_under_way
        )
        if is_under_way:
            if not self.task.is_chief:
                self.job = cluster_state.adopted(self.job, self._adopts, newest.agreement)
            cluster_state.check_agreement(
                self.cluster.named(self.task), self._agreement, newest.agreement
            )
        if self.initializes_variables:
            self.generation = time.time_ns() // 1000
            self._boards.write(generation=0, step=run.first_step)
        else:
            is_back = self.generation
            self.generation, run.first_step = newest.generation, newest.step
            if run.first_step or is_back:
                print('Joining the run at step %d' % run.first_step)
            self._boards.set_gone(self.task, 0)
        return True

    def _patience(self):
        """For how many seconds the worker waits although the run in its directory has ended."""
        if self.task.is_chief:
            return _ALONE_SECS
        # Elsewhere the directory of the chief can be another one.
        return 0 if server.is_here(self.cluster.worker[0]) else self.station.timeouts.connect / 2

    def _go_home(self, notices):
        print('Nothing to do: the run has ended')
        self.generation = 0
        if notices:
            with contextlib.suppress(tf.errors.OpError):  # the hosts may end meanwhile
                self._boards.set_gone(self.task, 1)
        return False

    def _read(self):
        """The notices on all boards, or None while some host is not there.

        Raises:
          UserError: a host has other addresses.
        """
        others = [host for host in self.hosts if host != self.task]
        if self._cards:  # A host that is stopped does not answer, and can go on.
            missing = server.unreachable(self.cluster, others)
        else:
            self._cards = self.station.read_cards(others)
            missing = [host for host, card in self._cards.items() if isinstance(card, str)]
        with contextlib.suppress(tf.errors.OpError):
            if not missing:
                return self._boards.read()
        self._cards = {}
        return None

    def made_local_step(self):
        """Notes a step of which the others see nothing; tells them now and then of it."""
        self.station.made_progress()
        if time.monotonic() > self._next_beat:
            self._next_beat = time.monotonic() + _BEAT_SECS
            self._boards.write(beat=time.time_ns())

    @property
    def device(self):
        """The device of the worker's graph, or a function that puts variables on servers."""
        if self._is_local:
            return self.task.device
        return variable_placement.on_servers(self.cluster, self.task)

    @property
    def _is_local(self):
        """Whether the worker trains variables of its own."""
        return self.strategy.mode in ('allreduce', 'average')

    def variables(self):
        """The block of the worker's towers, which read its variables, or copies of remote ones."""
        devices = self.job.variable_devices
        self._copies = None if self._is_local else variable_placement.Copies(self.task, devices)
        return self._copies.read() if self._copies else placement.variables_on(devices)

    def update(self, gradients, learning_rate, apply):
        """Returns the exchange.Update of the mode; see synchronous.update."""
        return _UPDATES[self.strategy.mode](self, self._copies, gradients, learning_rate, apply)

    def session(self, worker_update):
        """The SessionSettings of a worker with this Update."""
        self._update = worker_update
        if self.initializes_variables and not self._is_local:
            variable_placement.print_bytes(tf.global_variables())
        if self.job.devices_per_tower > 1 or self.job.variable_strategy != 'cpu':
            variable_placement.print_layout(self, worker_update, self._copies)
        return SessionSettings(
            server.session_config(self.cluster.servers + [self.task], self.job.session_config),
            self.station.target,
            self.initializes_variables or self._is_local,
            [self] + list(worker_update.hooks),
        )

    def after_create_session(self, session, coord):
        """Begins together with the others; the chief tells them that the variables have values."""
        if self.initializes_variables:
            session.run(self._update.publish_op)
            nobody_gone = [0] * len(self.cluster.workers)
            self._boards.write(agreement=self._agreement, finished=0, gone=nobody_gone)
            self._boards.write(generation=self.generation)
            self._boards.wake()
        session.run(self._update.start_op)
        self.station.set_phase(FILLING)

    def before_run(self, run_context):
        """Asks for the generation, if the mode has one to look at."""
        self.station.set_phase(TRAINING)
        return tf.train.SessionRunArgs(self._update.generation)

    def after_run(self, run_context, run_values):
        """Notes an update, or raises BegunAnew."""
        if self._update.generation is not None and run_values.results != self.generation:
            raise BegunAnew
        self._joinings = 0
        self.station.made_progress()


def _is_ready(notices):
    """Whether all hosts have values of the same generation."""
    return len({notice.generation for notice in notices}) == 1 and notices[0].generation != 0
