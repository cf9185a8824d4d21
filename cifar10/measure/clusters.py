"""Updates of whole clusters on this machine, beside one process with as many towers."""

import datetime
import os
import re
import sys
import tempfile
from typing import NamedTuple

from cifar10.errors import UserError
from cifar10.measure import cluster_estimate, processes
from cifar10.measure.cluster_estimate import (
    ALLREDUCE,
    ASYNC,
    AVERAGE,
    AVERAGE_PERIOD,
    LOCAL,
    SYNC,
)

_STEP_LINE = re.compile(r'(?:\[worker 0\] )?(\S+ \S+): step (\d+), ')
_NUM_WORKERS = (2, 4)
_LOOPBACK = '/sys/class/net/lo/statistics/tx_bytes'  # on Linux


class _Run(NamedTuple):
    """What was seen of a run."""

    seconds: float  # per update
    sent: float  # bytes per update, over the loopback interface
    start: float  # seconds from the start of all processes to the first update
    end: float  # seconds from the last update to the end of all processes


class _Marks:
    """The times of log lines, and the bytes that had been sent over the loopback interface then."""

    def __init__(self):
        self.marks = {}  # from steps to (time, bytes)

    def read(self, line):
        """Takes a line of a trainer."""
        match = _STEP_LINE.match(line)
        if match:
            self.marks[int(match.group(2))] = (
                datetime.datetime.fromisoformat(match.group(1)),
                _loopback_bytes(),
            )

    def run(self, first_step, started, ended):
        """A _Run; its pace is that from the first log line at `first_step` or later to the last
        one."""
        first, last = min(step for step in self.marks if step >= first_step), max(self.marks)
        (early, sent_before), (late, sent) = self.marks[first], self.marks[last]
        seconds = (late - early).total_seconds() / (last - first)
        first_update, _ = self.marks[min(self.marks)]
        return _Run(
            seconds,
            (sent - sent_before) / (last - first),
            (first_update - started).total_seconds(),
            (ended - late).total_seconds(),
        )


def _loopback_bytes():
    if not os.path.exists(_LOOPBACK):
        return float('nan')
    with open(_LOOPBACK) as counter:
        return int(counter.read())


def measure(unused_formulation, request):
    """Updates and images per second, and bytes per update, in each mode with 2 and 4 workers.

    Args:
      request: a benchmark.Request.

    Returns:
      A dict from names of figures to numbers.
    """
    batch_size, figures = request.job.hparams.batch_size, {}
    for num_workers in _NUM_WORKERS:
        for mode in (LOCAL, ALLREDUCE, SYNC, ASYNC, AVERAGE):
            run = _run(mode, num_workers, request)
            # With async, an update takes the batch of one worker.
            batches = 1 if mode == ASYNC else num_workers
            name = '%s, %d %s' % (
                ('one process', num_workers, 'towers')
                if mode == LOCAL
                else (mode, num_workers, 'workers')
            )
            figures['updates/sec, ' + name] = 1 / run.seconds
            figures['images/sec, ' + name] = batches * batch_size / run.seconds
            if mode == LOCAL:
                local = run
                continue
            figures['time of %d batches / one process, %s' % (num_workers, name)] = (
                run.seconds / local.seconds * num_workers / batches
            )
            figures['seconds to the first update beyond one process, ' + name] = (
                run.start - local.start
            )
            figures['seconds from the last update to the end, ' + name] = run.end
            servers = cluster_estimate.server_bytes(1, request.job.data.num_classes)
            worker, server = cluster_estimate.traffic(mode, num_workers, servers)
            figures['MB per update, ' + name] = run.sent / 1e6
            figures['MB per update on paper, ' + name] = (batches * worker + server) / 1e6
    return figures


def _run(mode, num_workers, request):
    """The _Run of so many workers, or of one process with so many towers."""
    steps = request.steps_or(40, 120)
    with tempfile.TemporaryDirectory() as train_dir:
        flags = request.data_flags + [
            '--train_dir=' + train_dir,
            '--max_steps=%d' % sum(steps),
            '--batch_size=%d' % request.job.hparams.batch_size,
            '--log_frequency=1',
            '--summary_steps=%d' % (2 * sum(steps)),
            '--checkpoint_steps=%d' % (2 * sum(steps)),
            '--eval_steps=0',
        ]
        script = os.path.join(
            request.scripts_dir,
            'cifar10_multi_gpu_train.py' if mode == LOCAL else 'cifar10_launch.py',
        )
        if mode == LOCAL:
            command = [script, '--num_gpus=%d' % num_workers] + flags
        else:  # each worker has a core of its own, as if it were a machine
            command = (
                [
                    script,
                    '--num_ps=%d' % (mode != ALLREDUCE),
                    '--num_workers=%d' % num_workers,
                    '--restarts=0',
                    '--',
                ]
                + flags
                + ['--mode=' + mode, '--intra_op_threads=1', '--inter_op_threads=1']
            )
        if mode == AVERAGE:
            command.append('--average_period=%d' % AVERAGE_PERIOD)
        marks, started = _Marks(), datetime.datetime.now()
        processes.watched([sys.executable] + command, marks.read, processes.end_with_tasks)
        try:
            return marks.run(steps.warmup, started, datetime.datetime.now())
        except ValueError:
            raise UserError(
                '%s was stopped before step %d: measure again'
                % (os.path.basename(script), steps.warmup)
            )
