"""Sessions with the cluster state after an error."""

import queue
import threading

import pytest
import tensorflow.compat.v1 as tf

from cifar10.distributed import cluster_state
from cifar10.distributed.cluster import Task


@pytest.mark.filterwarnings('error::pytest.PytestUnhandledThreadExceptionWarning')
def test_a_lost_task_blocks_only_another_thread():
    """TensorFlow may close the session of a lost task only after the task is back."""
    closing_threads, sessions = queue.Queue(), []
    lost = tf.errors.UnavailableError(None, None, 'lost')

    class Session:
        def run(self, fetches):
            raise lost

        def close(self):
            closing_threads.put(threading.current_thread())
            raise lost

    def connect(unused_graph):
        sessions.append(Session())
        return sessions[-1]

    variables = cluster_state.ClusterStateVariables([Task('ps', 0)], [Task('worker', 0)], connect)
    for count in (1, 2):
        with pytest.raises(tf.errors.UnavailableError):
            variables.read()
        assert len(sessions) == count
        closing_thread = closing_threads.get(timeout=100)
        assert closing_thread is not threading.current_thread()
        closing_thread.join(100)
