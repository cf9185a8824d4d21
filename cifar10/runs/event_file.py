"""Event files for TensorBoard."""

import collections
import contextlib
import os
import socket
import time

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.system import files

_ERRORS = RuntimeError, OSError, tf.errors.OpError
_MAX_PENDING_EVENTS = 100  # An event with histograms has about 70 KB.


class SummaryWriter:
    """Event file writer with the methods of tf.summary.FileWriter; a context manager.

    Each method flushes its event. tf.summary.FileWriter writes in another thread: TensorFlow 1.15
    loses errors; 2.21 raises the first error and drops all later events.

    The first event, and the first one after an error, opens a new file. Errors of writing raise
    UserError, or are added to `output_errors`. The newest 100 events that could not be written are
    kept for the next call.

    Attributes:
      output_errors: an errors.OutputErrors; None raises the errors.
    """

    def __init__(self, directory):
        """Make a writer for the log directory `directory`."""
        self._directory = directory
        self._pending_events = collections.deque(maxlen=_MAX_PENDING_EVENTS)
        self._writer = None
        self.output_errors = None

    def add_summary(self, summary, global_step=None):
        """Write a tf.Summary."""
        self._add(tf.Event(step=global_step, summary=summary))

    def add_graph(self, graph):
        """Write a tf.Graph."""
        graph_def = graph.as_graph_def(add_shapes=True)
        self._add(tf.Event(graph_def=graph_def.SerializeToString()))

    def add_session_log(self, session_log, global_step):
        """Write a tf.SessionLog."""
        self._add(tf.Event(step=global_step, session_log=session_log))

    def add_run_metadata(self, run_metadata, tag, global_step):
        """Write a tf.RunMetadata."""
        tagged = tf.summary.TaggedRunMetadata(
            tag=tag, run_metadata=run_metadata.SerializeToString()
        )
        self._add(tf.Event(step=global_step, tagged_run_metadata=tagged))

    def _add(self, event):
        event.wall_time = time.time()
        self._pending_events.append(event)
        if self.output_errors is None:
            self._write()
        else:
            # After a temporary error, a later call writes the pending events.
            with self.output_errors.collect('summaries'):
                self._write()
                self.output_errors.remove('summaries')

    def _write(self):
        try:
            if self._writer is None:
                self._open()
            for event in self._pending_events:
                self._writer.write(event.SerializeToString())
            self._writer.flush()
            self._flushed_size = os.path.getsize(self._path)  # fails if it was removed
            self._pending_events.clear()
        except _ERRORS as error:
            self._close()
            raise errors.UserError(
                f'Cannot write summaries ({errors.reason(error)}): make room in {self._directory}, or give another directory'
            )

    def _open(self):
        name = f'events.out.tfevents.{int(time.time()):010}.{socket.gethostname()}'
        # Several processes may write to the directory.
        with files.open_new(os.path.join(self._directory, name)) as new:
            self._path, self._flushed_size = new.name, 0
        self._writer = tf.io.TFRecordWriter(self._path)
        version = tf.Event(wall_time=time.time(), file_version='brain.Event:2')
        self._writer.write(version.SerializeToString())

    def _close(self):
        """Close the file; remove an incomplete event, because TensorBoard stops there."""
        if self._writer is None:
            return
        with contextlib.suppress(*_ERRORS):
            self._writer.close()
        self._writer = None
        with contextlib.suppress(OSError):
            os.truncate(self._path, self._flushed_size)
            if not self._flushed_size:
                os.remove(self._path)

    def __enter__(self):
        return self

    def __exit__(self, *unused_error):
        self._close()
