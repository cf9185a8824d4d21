"""A parameter server: holds its part of the variables until the run is over."""
import json
import threading
import time

from cifar10.distributed.board import Boards
from cifar10.distributed.supervisor import Supervisor

_LOOK_SECS = 0.2
_GOODBYE_SECS = 3  # for workers to close their sessions: one that has lost its server while it closes waits for minutes


def serve(station):
    """Serves until the run has finished; ends the process if no chief comes, or no update is made for too long.

    Args:
      station: the Station of this process.
    """
    cluster, task = station.cluster, station.task
    boards = Boards([task], cluster.workers, lambda graph: station.connect(graph, [task]))
    boards.open(cluster.text)
    print('%s is ready' % cluster.named(task), flush=True)
    station.expect_start()
    while not boards.read()[0].generation:
        time.sleep(_LOOK_SECS)
    if task.index == 0 and json.loads(boards.read()[0].agreement)['mode'] == 'average':
        supervisor = Supervisor(cluster, station.connect, lambda: boards.read()[0])
        threading.Thread(target=supervisor.run, daemon=True).start()
    notice = last = boards.read()[0]
    while not notice.finished:
        if notice != last:
            station.expect_progress()
            last = notice
        time.sleep(_LOOK_SECS)
        notice = boards.read()[0]
    station.watchdog.rest()
    deadline = time.monotonic() + _GOODBYE_SECS
    while not all(boards.read()[0].gone) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECS)
    print('The run has finished at step %d' % notice.step, flush=True)
