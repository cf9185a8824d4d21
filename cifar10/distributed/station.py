"""A task of this process: its TensorFlow server, its card, and the timer that ends it when it has waited too long."""
import time

import tensorflow.compat.v1 as tf

from cifar10.distributed import peers, server
from cifar10.distributed.cluster import FILLING
from cifar10.distributed.watchdog import Watchdog
from cifar10.errors import UserError

_LOOK_SECS = 0.2


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
        """Starts the server, and waits until the address of the task leads to it; other tasks could not reach it before.

        Args:
          cluster, task, timeouts: see above.
          config: a tf.ConfigProto, see server.start.

        Raises:
          UserError: the server cannot listen at its port, or another process answers at the address of the task.
        """
        self.cluster, self.task, self.timeouts = cluster, task, timeouts
        self.target = server.start(cluster, task, config)
        self._card = peers.OwnCard(self.target, cluster, task)
        self._others = [other for other in cluster.servers + cluster.workers if other != task]
        self._has_met = False  # whether another task has ever answered
        self._has_progressed = False
        self._is_found = peers.is_here(cluster.address(task))
        self.watchdog = Watchdog()
        self.start_timer()
        while not self._is_found:
            found = peers.read_card(cluster.address(task))
            self._is_found = found == self._card.card
            if isinstance(found, peers.Card) and not self._is_found:
                raise UserError('Another process is %s already: it answers at that address. Give this one its own --task_index, or '
                                'end the other one' % cluster.named(task))
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
        cards = peers.read_cards(self.cluster, tasks)
        self._has_met |= any(isinstance(card, peers.Card) for card in cards.values())
        peers.check_cards(self.cluster, self.task, cards)
        return cards

    def await_departures(self, boards):
        """Waits until the workers that can be reached have read that the run is over; not for ever: one of them may be stopped."""
        deadline = time.monotonic() + self.timeouts.stall
        while time.monotonic() < deadline:
            staying = [worker for worker, is_gone in zip(self.cluster.workers, boards.read()[0].gone) if not is_gone]
            if len(peers.unreachable(self.cluster, staying)) == len(staying):
                break
            time.sleep(_LOOK_SECS)

    def _describe(self):
        """The phase of the task, for which tasks it waits, and the reason why they may never come; see Watchdog.watch."""
        phase = self._card.card.phase
        if not self._is_found:
            own, = peers.absent(self.cluster, peers.read_cards(self.cluster, [self.task])) or ['']
            return phase, own and own + ', the address of this task', 'check --task_index and the addresses'
        if phase == FILLING:
            return phase, '', ''
        cards = peers.read_cards(self.cluster, self._others)
        self._has_met |= any(isinstance(card, peers.Card) for card in cards.values())
        doubt = '' if self._has_met or not cards else 'no other task has ever answered; the run has ended, or the addresses are wrong'
        return phase, ', '.join(peers.absent(self.cluster, cards)), doubt
