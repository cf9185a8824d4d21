"""The life of a task in a cluster: its TensorFlow server, its card, and the watchdog, which says
for whom the task waits and ends the process when it has waited too long.

A call of TensorFlow's runtime never returns if its peer is stopped or cut off, so the process has
to end from another thread.
"""

import contextlib
import os
import sys
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.distributed import server
from cifar10.distributed.cluster import FILLING, STALLED
from cifar10.errors import UserError

_LOOK_SECS = 0.2
_FIRST_MESSAGE_SECS = 5
_NEXT_MESSAGE_SECS = 30
_ATTEMPTS = 3  # each of --connect_timeout_secs, to reach tasks that may never come
# After a task has moved to another host, the name of the host can lead to the old one for a while.
_SUCCESSION_SECS = 30


def end(message, status=STALLED):
    """Ends the process, by default with the status that asks a supervisor to start it again."""
    errors.warn(message)
    with contextlib.suppress(OSError, ValueError):  # nobody may read any more
        sys.stdout.flush()
    os._exit(status)


class Watchdog:
    """A thread that ends the process when nothing has progressed for too long."""

    def __init__(self, describe):
        """Starts the thread, which waits for `watch`.

        Args:
          describe: a function that returns the phase, the tasks for which the process waits as a
            text, '' if it cannot tell, and the reason why they may never come, or ''. It may take
            a few seconds.
        """
        self._describe = describe
        self._limit = None
        threading.Thread(target=self._guard, daemon=True).start()

    def watch(self, secs, flag):
        """From now on, the process ends when `progress` has not been called for `secs` seconds.

        It waits three times as long for what may never come, and then ends with status 1, so that
        nobody starts it again.

        Args:
          secs: the longest time without progress.
          flag: the flag that gives `secs`.
        """
        self.progress()
        self._limit = secs, flag

    def rest(self):
        """Ends the watch."""
        self._limit = None

    def progress(self):
        """Starts the time anew."""
        self._progressed = time.monotonic()

    def _guard(self):
        try:
            self._look()
        except Exception as error:  # without it the process could wait for ever
            end('The watchdog failed (%s): start this task again' % error)

    def _look(self):
        progressed = None
        while True:
            time.sleep(_LOOK_SECS)
            limit = self._limit  # which another thread can set at any moment
            if not limit:
                continue
            secs, _ = limit
            if progressed != self._progressed:
                progressed, next_message, attempts = self._progressed, _FIRST_MESSAGE_SECS, 1
            if time.monotonic() - progressed < min(next_message, attempts * secs):
                continue
            phase, awaited, doubt = self._describe()
            if progressed != self._progressed or not self._limit:
                continue
            waited = time.monotonic() - progressed
            if waited >= attempts * secs:
                self._end_unless_in_doubt(limit, phase, awaited, doubt, attempts)
                attempts += 1
            if waited >= next_message:
                next_message += _NEXT_MESSAGE_SECS
                if awaited:
                    print('%s: waiting for %s' % (phase.capitalize(), awaited))

    @staticmethod
    def _end_unless_in_doubt(limit, phase, awaited, doubt, attempts):
        secs, flag = limit
        waited = '%s: waited %d seconds (%s--%s)' % (
            phase.capitalize(),
            attempts * secs,
            '%d times ' % attempts if attempts > 1 else '',
            flag,
        )
        if doubt and attempts == _ATTEMPTS:
            end('%s for %s: %s' % (waited, awaited, doubt), status=1)
        if not doubt and phase == FILLING:
            end(waited + ': start this task again, with a longer time if the disk is slow')
        if not doubt:
            awaited = awaited or 'the others, although all of them answer'
            end('%s for %s: start this task again when the others are there' % (waited, awaited))


class Station:
    """A task with its TensorFlow server.

    Attributes:
      cluster: a Cluster.
      task: a Task.
      target: of its server.
      timeouts: the Timeouts.
      watchdog: a Watchdog.
    """

    def __init__(self, cluster, task, config, timeouts):
        """Starts the server, and waits until the address of the task leads to it.

        Args:
          cluster, task, timeouts: see above.
          config: a tf.ConfigProto, see server.start.

        Raises:
          UserError: the server cannot listen at its port, or another process answers at the address
            of the task.
        """
        self.cluster, self.task, self.timeouts = cluster, task, timeouts
        self.target = server.start(cluster, task, config)
        self._card = server.OwnCard(self.target, cluster, task)
        self._is_known = False  # whether the address of the task leads to it
        self._has_met = False  # whether the chief has ever answered; for the chief, any other task
        self.watchdog = Watchdog(self._describe)
        self._start_timer('connect')
        self._await_own_card()

    def _await_own_card(self):
        first_seen = None  # when another process answered
        while True:
            found = server.read_card(self.cluster.address(self.task))
            self._is_known = found == self._card.card
            if self._is_known:
                return
            if isinstance(found, server.Card):
                first_seen = first_seen or time.monotonic()
                if time.monotonic() > first_seen + _SUCCESSION_SECS:
                    raise UserError(
                        'Another process answers at the address of %s, as %s: check --task_index and the addresses, or end '
                        'that process' % (self.cluster.named(self.task), found.name)
                    )
            time.sleep(_LOOK_SECS)

    def connect(self, graph, tasks):
        """A tf.Session for a graph whose operations are on these Tasks; any other may be away."""
        return tf.Session(self.target, graph, server.session_config(tasks))

    def set_phase(self, phase):
        """Tells the others in which phase the task is, one of those in cluster.py."""
        if phase != self._card.card.phase:
            self._card.set_phase(phase)

    def _start_timer(self, name):
        """Starts the timer of one of the Timeouts: the process ends unless it makes progress in
        time."""
        self._timer = name
        self.watchdog.watch(getattr(self.timeouts, name), name + '_timeout_secs')

    def join(self, phase, restarts_timer=True):
        """Notes that the task has joined the others, and now is in this phase."""
        self._has_met |= not self.task.is_chief
        if restarts_timer:
            self._start_timer('connect')
        self.set_phase(phase)

    def made_progress(self):
        """Starts the timer anew after an update."""
        self._has_met = True
        if self._timer != 'stall':
            self._start_timer('stall')
        self.watchdog.progress()

    def read_cards(self, tasks):
        """The cards of other tasks, see server.read_cards.

        Raises:
          UserError: a task was started with other addresses.
        """
        cards = self._ask(tasks)
        for other, card in cards.items():
            if isinstance(card, server.Card) and card.cluster != self.cluster.text:
                name, own = self.cluster.named(other), self.cluster.named(self.task)
                raise UserError(
                    '%s was started with %s, but %s with %s: give all tasks the same'
                    % (name, card.cluster, own, self.cluster.text)
                )
        return cards

    def _ask(self, tasks):
        cards = server.read_cards(self.cluster, tasks)
        for task, card in cards.items():
            if isinstance(card, server.Card) and (self.task.is_chief or task.is_chief):
                self._has_met = True
        return cards

    def await_departures(self, boards):
        """Waits until the workers that can be reached have read that the run is over; not for ever:
        one of them may be stopped."""
        deadline = time.monotonic() + self.timeouts.stall
        while time.monotonic() < deadline:
            gone = boards.read()[0].gone
            staying = [worker for worker in self.cluster.workers if not gone[worker.index]]
            if len(server.unreachable(self.cluster, staying)) == len(staying):
                break
            time.sleep(_LOOK_SECS)

    def _describe(self):
        """Returns the phase, the awaited tasks, and the reason why they may never come; see
        Watchdog."""
        phase = self._card.card.phase
        if phase == FILLING:
            return phase, '', ''
        if not self._is_known:
            address = self.cluster.address(self.task)
            found = server.read_card(address)
            reason = found if isinstance(found, str) else '%s answers' % found.name
            return (
                phase,
                '%s (%s: %s), the address of this task' % (self.task, address, reason),
                'check --task_index and the addresses',
            )
        others = [task for task in self.cluster.servers + self.cluster.workers if task != self.task]
        awaited = ', '.join(server.absent(self.cluster, self._ask(others)))
        if self._has_met or not others:
            return phase, awaited, ''
        who = 'no other task has ever' if self.task.is_chief else 'the chief has never'
        return phase, awaited, who + ' answered; the run has ended, or the addresses are wrong'
