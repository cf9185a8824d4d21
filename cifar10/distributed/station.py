"""A task of this process: its TensorFlow server, its card, and the timer that ends it when it has
waited too long."""

import time

import tensorflow.compat.v1 as tf

from cifar10.distributed import peers, server
from cifar10.distributed.cluster import FILLING
from cifar10.distributed.watchdog import Watchdog
from cifar10.errors import UserError

_LOOK_SECS = 0.2
# After a task has moved to another host, the name of the host can lead to the old one for a while.
_SUCCESSION_SECS = 30


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
        self._card = peers.OwnCard(self.target, cluster, task)
        self._others = [other for other in cluster.servers + cluster.workers if other != task]
        self._is_known = False  # whether the address of the task leads to it
        self._has_met = False  # whether the chief has ever answered; for the chief, any other task
        self._has_progressed = False  # whether there was an update since the task joined
        self.watchdog = Watchdog()
        self.start_timer()
        self._await_own_card()

    def _await_own_card(self):
        address = self.cluster.address(self.task)
        first_seen = {}  # From the incarnations of other processes to times.
        while True:
            found = peers.read_card(address)
            self._is_known = found == self._card.card
            if self._is_known:
                return
            if isinstance(found, peers.Card) and (
                time.monotonic()
                > first_seen.setdefault(found.incarnation, time.monotonic()) + _SUCCESSION_SECS
            ):
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
        self._card.set_phase(phase)

    def start_timer(self):
        """Starts the timer: the process ends unless it makes progress in time."""
        name = 'stall' if self._has_progressed else 'connect'
        self.watchdog.watch(self._describe, getattr(self.timeouts, name), name + '_timeout_secs')

    def join(self, phase, restarts_timer=True):
        """Notes that the task has joined the others, and now is in this phase."""
        self._has_met |= not self.task.is_chief
        if restarts_timer:
            self._has_progressed = False
            self.start_timer()
        self.set_phase(phase)

    def made_progress(self):
        """Starts the timer anew after an update."""
        if not self._has_progressed:
            self._has_progressed = True
            self.start_timer()
        self.watchdog.progress()

    def read_cards(self, tasks):
        """The cards of other tasks, see peers.read_cards.

        Raises:
          UserError: a task was started with other addresses.
        """
        cards = self._ask(tasks)
        peers.check_cards(self.cluster, self.task, cards)
        return cards

    def _ask(self, tasks):
        cards = peers.read_cards(self.cluster, tasks)
        answering = [task for task, card in cards.items() if isinstance(card, peers.Card)]
        if any(self.task.is_chief or task.is_chief for task in answering):
            self._has_met = True
        return cards

    def await_departures(self, boards):
        """Waits until the workers that can be reached have read that the run is over; not for ever:
        one of them may be stopped."""
        deadline = time.monotonic() + self.timeouts.stall
        while time.monotonic() < deadline:
            staying = [
                worker
                for worker, is_gone in zip(self.cluster.workers, boards.read()[0].gone)
                if not is_gone
            ]
            if len(peers.unreachable(self.cluster, staying)) == len(staying):
                break
            time.sleep(_LOOK_SECS)

    def _describe(self):
        """Returns the phase, the awaited tasks, and the reason why they may never come; see
        Watchdog.watch."""
        phase = self._card.card.phase
        if phase == FILLING:
            return phase, '', ''
        if not self._is_known:
            address = self.cluster.address(self.task)
            found = peers.read_card(address)
            reason = found if isinstance(found, str) else '%s answers' % found.name
            return (
                phase,
                '%s (%s: %s), the address of this task' % (self.task, address, reason),
                ('check --task_index and the addresses'),
            )
        cards = self._ask(self._others)
        doubt = (
            ''
            if self._has_met or not cards
            else '%s; the run has ended, or the addresses are wrong'
            % (
                'no other task has ever answered'
                if self.task.is_chief
                else 'the chief has never answered'
            )
        )
        return phase, ', '.join(peers.absent(self.cluster, cards)), doubt
