"""A parameter server: holds its part of the variables until the run is over."""

import json
import threading
import time

from cifar10.distributed.averaging import WeightAverager
from cifar10.distributed.cluster import TRAINING
from cifar10.distributed.cluster_state import Boards

_LOOK_SECS = 0.1


def serve(station):
    """Serves until the run has finished; ends the process if no chief comes, or no update is made
    for too long.

    Args:
      station: the Station of this process.
    """
    cluster, task = station.cluster, station.task
    boards = Boards([task], cluster.workers, lambda graph: station.connect(graph, [task]))
    boards.open()
    print('%s is ready' % cluster.named(task))
    while not boards.read()[0].generation:
        time.sleep(_LOOK_SECS)
    station.join(TRAINING)
    notice = last = boards.read()[0]
    if task.index == 0 and json.loads(notice.agreement)['mode'] == 'average':
        averager = WeightAverager(cluster, station.connect, lambda: boards.read()[0])
        threading.Thread(target=averager.run, daemon=True).start()
    while not notice.finished:
        if notice.generation != last.generation:
            station.join(TRAINING)
        elif notice != last:
            station.made_progress()
        last = notice
        time.sleep(_LOOK_SECS)
        notice = boards.read()[0]
    station.watchdog.rest()
    # a worker that has lost its server while it closes its session waits for minutes
    station.await_departures(boards)
    print('The run has finished at step %d' % notice.step)
