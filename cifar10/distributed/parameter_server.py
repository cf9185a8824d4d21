"""Parameter server: a process that holds a part of the variables."""

import json
import threading
import time

from cifar10.distributed.averaging import WeightAverager
from cifar10.distributed.cluster import TRAINING
from cifar10.distributed.cluster_state import ClusterStateVariables

_POLL_SECS = 0.1


def serve(context):
    """Serve variables until the run has finished.

    The watchdog of the TaskContext ends the process if there is no chief or no progress.
    """
    cluster, task = context.cluster, context.task
    state_variables = ClusterStateVariables(
        [task], cluster.worker_tasks, lambda graph: context.connect(graph, [task])
    )
    state_variables.initialize()
    print(f'{cluster.describe(task)} is ready')
    while not state_variables.read()[0].generation:
        time.sleep(_POLL_SECS)
    context.join(TRAINING)
    state = last_state = state_variables.read()[0]
    if task.index == 0 and json.loads(state.run_config)['mode'] == 'average':
        averager = WeightAverager(
            cluster,
            context.connect,
            lambda: state_variables.read()[0],
            max_timeout=context.timeouts.stall / 2,
        )
        threading.Thread(target=averager.run, daemon=True).start()
    while not state.finished:
        if state.generation != last_state.generation:
            context.join(TRAINING)
        elif state != last_state:
            context.report_progress()
        last_state = state
        time.sleep(_POLL_SECS)
        state = state_variables.read()[0]
    context.watchdog.stop()
    # Without its server, a worker would need minutes to close its session.
    context.wait_for_workers_to_leave(state_variables)
    print(f'The run has finished at step {state.step}')
