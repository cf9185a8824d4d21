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
    closing_threads, is_back = queue.Queue(), threading.Event()
    sessions, threads = [], []

    class Session(tf.Session):
        def run(self, fetches, feed_dict=None):
            raise tf.errors.UnavailableError(None, None, 'lost')

        def close(self):
            closing_threads.put(threading.current_thread())
            if threading.current_thread() is not main_thread:
                is_back.wait(100)
            super().close()
            raise tf.errors.UnavailableError(None, None, 'lost')

    def connect(graph):
        sessions.append(None)
        return Session('', graph)

    main_thread = threading.current_thread()
    variables = cluster_state.ClusterStateVariables([Task('ps', 0)], [Task('worker', 0)], connect)
    for count in (1, 2):
        with pytest.raises(tf.errors.UnavailableError):
            variables.read()
        assert len(sessions) == count
        threads.append(closing_threads.get(timeout=100))
    assert main_thread not in threads
    is_back.set()
    for thread in threads:
        thread.join(100)
