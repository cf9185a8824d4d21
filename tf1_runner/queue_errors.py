"""Errors of the threads that fill queues, instead of the error of the queue that they leave empty.

Such a thread ends, and its queue is closed. The main thread then gets an OutOfRangeError, as at the
end of the data.
"""

import collections
import contextlib
import functools
import re
import threading

import tensorflow.compat.v1 as tf

from cifar10 import errors
from tf1_runner import error_hints

WARN_AFTER_SECS = 5.0
# Error message of a queue thread if its session was closed between two steps.
CLOSED = 'Session has been closed'
_END_OF_QUEUE = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
_REMEDIES = [  # (pattern of the message, remedy)
    (
        'uninitialized',
        'run tf.global_variables_initializer() and tf.local_variables_initializer() first',
    ),
    ('^~.*; No such file', 'TensorFlow does not expand ~: write os.path.expanduser(...)'),
    ('^[^/~:][^:]*; No such file', 'a relative path starts in the working directory'),
    (
        'is closed and has insufficient elements',
        'the data have ended, or there are fewer examples than in a batch: catch '
        'tf.errors.OutOfRangeError',
    ),
    ('requires a non-null input tensor', 'no file matches the pattern: correct it'),
]

# The session, the operation, its graph and the coordinator may be None.
_Cause = collections.namedtuple('_Cause', 'error session operation graph coordinator')

_causes = []
_told = set()  # graphs
_lock = threading.RLock()
_thread = threading.local()  # session, enqueue_op: of a thread of a QueueRunner


def install(directory):
    """Record the errors of threads that fill queues, for a program in `directory`.

    Warn of a cause if nothing has shown it for some time, because the main thread waits or goes on.
    """
    tf.train.QueueRunner.__init__ = functools.partialmethod(
        tf.train.QueueRunner.__init__, queue_closed_exception_types=_END_OF_QUEUE
    )
    run = tf.train.QueueRunner._run
    stop = tf.train.Coordinator.request_stop
    should_stop = tf.train.Coordinator.should_stop  # A subclass can call request_stop in its own.

    def record(error, coordinator):
        is_end = re.search(f'{CLOSED}|closed Session', str(error))
        if not is_end and not isinstance(error, _END_OF_QUEUE):
            _causes.append(_make_cause(error, coordinator))
            timer = threading.Timer(WARN_AFTER_SECS, warn_untold, [directory])
            timer.daemon = True
            timer.start()

    def run_and_record(self, sess, enqueue_op, coord=None):
        _forget(sess, directory)
        _thread.session, _thread.enqueue_op = sess, enqueue_op
        try:
            run(self, sess, enqueue_op, coord)
        except Exception as error:  # It has no coordinator.
            record(error, None)
            if not self._runs_per_session[sess]:  # The last thread of this queue has ended.
                with contextlib.suppress(RuntimeError, tf.errors.OpError):  # of a closed session
                    sess.run(self.cancel_op)

    def stop_and_record(self, ex=None):
        with _lock:
            was_stopped = should_stop(self)
            stop(self, ex)
            if was_stopped or threading.current_thread() is threading.main_thread():
                return
            try:
                self.raise_requested_exception()  # There is none if `ex` means the end of the data.
            except Exception as error:
                record(error, self)

    tf.train.QueueRunner._run = run_and_record
    tf.train.Coordinator.request_stop = stop_and_record


def _forget(session, directory):
    """Forget the causes of earlier sessions of a graph, because a new session has new queues."""
    graph = session.graph
    old = [
        cause for cause in _causes if cause.graph is graph and cause.session not in (None, session)
    ]
    if old:
        warn_untold(directory)
        _told.discard(graph)
        with _lock:
            _causes[:] = [cause for cause in _causes if cause not in old]


def _make_cause(error, coordinator):
    enqueue_op = getattr(_thread, 'enqueue_op', None)
    operation = getattr(error, 'op', None) or enqueue_op
    graph = operation and operation.graph
    # QueueRunner does not look up the operation that failed.
    named = re.search(r'\{\{node ([^}]*)\}\}', str(error))
    if graph and named:
        with contextlib.suppress(KeyError):  # The optimizer of graphs has made the operation.
            operation = graph.get_operation_by_name(named.group(1))
    return _Cause(error, getattr(_thread, 'session', None), operation, graph, coordinator)


def find_cause(error):
    """Return the recorded cause of an error of the main thread, to show it; None if there is none.

    The error is the cause itself, raised by a coordinator, or that of a closed queue.
    """
    is_end = isinstance(error, _END_OF_QUEUE) and re.search('closed|cancelled', error.message)
    graph = getattr(getattr(error, 'op', None), 'graph', None)
    with _lock:  # After a stop, its cause may not yet be recorded.
        found = [
            cause
            for cause in _causes
            if cause.error is error or (is_end and cause.graph in (None, graph))
        ]
    if not found:
        return None
    _told.add(found[-1].graph)
    return found[-1]


def find_line(error, directory):
    """Return one line with place, cause and remedy for an error of the main thread, or None."""
    cause = find_cause(error)
    return cause and _line(cause, directory)


def describe(error, directory):
    """Return one line with place and cause of an error of an operation; None for any other.

    The cause is in the middle of the traceback, which ends with the definition of the operation.
    """
    is_of_operation = isinstance(error, tf.errors.OpError)
    return _line(_make_cause(error, None), directory) if is_of_operation else None


def find_remedy(error):
    """Return the remedy for a known cause; None for any other."""
    return next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, str(error))), None)


def warn_untold(directory):
    """Warn of the causes that nothing has shown, because the program has caught the error."""
    for cause in _causes:
        # At its join, the coordinator has raised the error.
        if cause.graph not in _told and not (cause.coordinator and cause.coordinator.joined):
            _told.add(cause.graph)
            errors.warn(f'A thread that fills a queue has failed: {_line(cause, directory)}')


def _line(cause, directory):
    error = cause.error
    hint = error_hints.find_hint(error, directory)
    if hint:
        return hint
    entries = error_hints.program_entries(error.__traceback__, directory)
    places = [(entry.tb_frame.f_code.co_filename, entry.tb_lineno) for entry in entries]
    if cause.operation:  # Its definition says more than the call of `run`.
        places += [
            (path, number)
            for path, number, *_ in cause.operation.traceback
            if error_hints.is_beside(path, directory)
        ]
    place = '{}:{}: '.format(*places[-1]) if places else ''
    reason = errors.reason(error) if isinstance(error, tf.errors.OpError) else str(error)
    remedy = find_remedy(error)
    return f'{place}{type(error).__name__}: {" ".join(reason.split()).rstrip(".")}' + (
        f'; {remedy}' if remedy else ''
    )
