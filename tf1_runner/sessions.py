"""Sessions of a program: the CPU instead of a missing GPU, saved checkpoints, the end."""

import functools
import os
import re
import sys
import threading
import weakref

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.runs import run_record
from cifar10.system import machine
from tf1_runner.private_api import session as session_lib

_sessions = weakref.WeakSet()


def install():
    """Record every session; without a GPU, use the CPU, and say so once."""
    base = tf.Session.__mro__[1]
    init = base.__init__

    def init_and_remember(self, target='', graph=None, config=None):
        if not _has_gpu():
            # For a graph from a file, and for other tasks of a cluster.
            config = config or tf.ConfigProto()
            config.allow_soft_placement = True
        init(self, target, graph, config)
        _sessions.add(self)

    base.__init__ = init_and_remember
    _use_cpu()
    _warn_of_runs()


@functools.lru_cache(maxsize=None)
def _has_gpu():
    """Return True if TensorFlow finds a GPU.

    The first call must come after the program has set CUDA_VISIBLE_DEVICES.
    """
    return bool(tf.config.experimental.list_physical_devices('GPU'))


def _use_cpu():
    """Let tf.device mean the CPU for each GPU of this task, if there is none.

    Soft placement is not enough: it leaves readers, and what they are colocated with, on the GPU.
    """
    tasks = {(job, task) for job in (None, 'localhost') for task in (None, 0)}
    start_server = tf.train.Server.__init__

    def start_and_remember(self, *positional, **named):
        start_server(self, *positional, **named)
        tasks.add((self.server_def.job_name, self.server_def.task_index))

    tf.train.Server.__init__ = start_and_remember
    device_scope = tf.Graph.device
    is_told = False

    def cpu_for_gpu(device):
        nonlocal is_told
        if callable(device):
            return lambda operation: cpu_for_gpu(device(operation))
        name = device.to_string() if hasattr(device, 'to_string') else device
        if not re.search('(?i)gpu', str(name)) or _has_gpu():
            return device
        spec = tf.DeviceSpec.from_string(name)
        if spec.device_type != 'GPU' or (spec.job, spec.task) not in tasks:
            return device
        if not is_told:
            is_told = True
            errors.warn(f'No GPU found: {name} means /cpu:0 ({machine.GPU_REMEDY})')
        return tf.DeviceSpec(spec.job, spec.replica, spec.task, 'CPU', 0).to_string()

    tf.Graph.device = lambda self, device: device_scope(self, cpu_for_gpu(device))


def _warn_of_runs():
    """Warn once of each directory in which a program's checkpoints replace the list of a run."""
    save, warned = tf.train.Saver.save, set()

    @functools.wraps(save)
    def warn_and_save(self, sess, save_path, *positional, **named):
        directory = os.path.dirname(os.path.abspath(save_path))
        if directory not in warned and run_record.exists(directory):
            warned.add(directory)
            errors.warn(
                f'{directory} holds a run of a trainer, and the checkpoints of this program replace its list: '
                'give the program another directory'
            )
        return save(self, sess, save_path, *positional, **named)

    tf.train.Saver.save = warn_and_save


def close():
    """Close all sessions and join the threads that use them, which could abort Python at exit."""
    threading.excepthook = lambda error: None  # These threads fail now.
    # Before the sessions are closed, because a thread may leave its session, and go on.
    threads = [thread for thread in threading.enumerate() if _is_in_session(thread)]
    for session in list(_sessions):
        session.close()
    for thread in {*threading.enumerate(), *threads}:
        # A close_on_stop thread may never end.
        is_runner = thread.name.startswith('QueueRunnerThread')
        if is_runner and not thread.name.endswith('close_on_stop') or thread in threads:
            thread.join(timeout=10)


def _is_in_session(thread):
    """Return True for another thread in a call of a session."""
    frame = sys._current_frames().get(thread.ident)
    while frame and thread is not threading.current_thread():
        if frame.f_code.co_filename == session_lib.__file__:
            return True
        frame = frame.f_back
    return False
