"""Sessions and devices of a program: the CPU instead of a missing GPU, the end of sessions."""

import re
import threading
import weakref

import tensorflow.compat.v1 as tf

from cifar10 import errors, placement

_sessions = weakref.WeakSet()


def install():
    """Record every session; without a GPU, use the CPU, and say so once."""
    has_gpu = bool(tf.config.experimental.list_physical_devices('GPU'))
    base = tf.Session.__mro__[1]
    init = base.__init__

    def init_and_remember(self, target='', graph=None, config=None):
        if not has_gpu:
            # For a graph from a file, and for other tasks of a cluster.
            config = config or tf.ConfigProto()
            config.allow_soft_placement = True
        init(self, target, graph, config)
        _sessions.add(self)

    base.__init__ = init_and_remember
    if not has_gpu:
        _use_cpu()


def _use_cpu():
    """Let tf.device mean /cpu:0 for each GPU of this task.

    Soft placement is not enough: it leaves readers, and what they are colocated with, on the GPU.
    """
    device_scope = tf.Graph.device
    is_told = False

    def cpu_for_gpu(device):
        nonlocal is_told
        if callable(device):
            return lambda operation: cpu_for_gpu(device(operation))
        name = device.to_string() if hasattr(device, 'to_string') else device
        if not isinstance(name, str) or not re.fullmatch(r'(?i)/?(device:)?gpu:(\d+|\*)', name):
            return device
        if not is_told:
            is_told = True
            errors.warn(f'No GPU found: {name} means /cpu:0 ({placement.GPU_REMEDY})')
        return '/cpu:0'

    tf.Graph.device = lambda self, device: device_scope(self, cpu_for_gpu(device))


def close():
    """Close all sessions and join the queue threads, which could abort Python at exit."""
    for session in list(_sessions):
        session.close()
    for thread in threading.enumerate():
        # A close_on_stop thread may never end.
        if thread.name.startswith('QueueRunnerThread') and not thread.name.endswith(
            'close_on_stop'
        ):
            thread.join(timeout=10)
