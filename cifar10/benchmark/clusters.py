"""Measurements of clusters on this machine, beside one process with as many towers."""

import datetime
import os
import sys
import tempfile

from cifar10.benchmark import cluster_estimate, processes
from cifar10.benchmark.cluster_estimate import ALLREDUCE, ASYNC, AVERAGE, AVERAGE_PERIOD, LOCAL


def measure(unused_formulation, request):
    """Updates and images per second, and bytes per update, in each mode with 2 and 4 workers.

    Args:
      request: a benchmark.Request.

    Returns:
      A dict from names of figures to numbers.
    """
    job, figures = request.job, {}
    servers = cluster_estimate.server_bytes(1, job.data.num_classes)
    for num_workers in (2, 4):
        for mode in cluster_estimate.MEASURED:  # LOCAL first
            seconds, sent, start, end = _run(mode, num_workers, request)
            # With async, an update takes the batch of one worker.
            batches = 1 if mode == ASYNC else num_workers
            name = '%s, %d workers' % (mode, num_workers)
            if mode == LOCAL:
                name = 'one process, %d towers' % num_workers
                local_seconds, local_start = seconds * num_workers, start
            figures['updates/sec, ' + name] = 1 / seconds
            figures['images/sec, ' + name] = batches * job.hparams.batch_size / seconds
            if mode == LOCAL:
                continue
            figures['time of %d batches / one process, %s' % (num_workers, name)] = (
                seconds / batches * num_workers**2 / local_seconds
            )
            figures['seconds to the first update beyond one process, ' + name] = start - local_start
            figures['seconds from the last update to the end, ' + name] = end
            figures['MB per update, ' + name] = sent / 1e6
            worker, server = cluster_estimate.traffic(mode, num_workers, servers)
            figures['MB per update on paper, ' + name] = (batches * worker + server) / 1e6
    return figures


def _run(mode, num_workers, request):
    """Runs a cluster, or one process with as many towers.

    Returns:
      Of an update: seconds, and bytes over the loopback interface; seconds from the start of all
      processes to the first update, and from the last update to the end of all processes.
    """
    steps = request.steps_or(40, 120)
    last_step = sum(steps)
    with tempfile.TemporaryDirectory() as train_dir:
        flags = request.data_flags + [
            '--train_dir=' + train_dir,
            '--max_steps=%d' % last_step,
            '--batch_size=%d' % request.job.hparams.batch_size,
            '--log_frequency=1',
            '--summary_steps=%d' % (2 * last_step),
            '--checkpoint_steps=%d' % (2 * last_step),
            '--eval_steps=0',
        ]
        if mode == LOCAL:
            script, words = 'cifar10_multi_gpu_train.py', ['--num_gpus=%d' % num_workers]
        else:
            script = 'cifar10_launch.py'
            words = ['--num_ps=%d' % (mode != ALLREDUCE), '--num_workers=%d' % num_workers]
            words += ['--restarts=0', '--', '--mode=' + mode]
            # Each worker has a core of its own, as if it were a machine.
            flags += ['--intra_op_threads=1', '--inter_op_threads=1']
        if mode == AVERAGE:
            flags.append('--average_period=%d' % AVERAGE_PERIOD)
        command = [sys.executable, os.path.join(request.scripts_dir, script)] + words + flags
        started = datetime.datetime.now()
        marks, _ = processes.run_trainer(command, steps.warmup + 1, processes.end_with_tasks)
        ended = datetime.datetime.now()
    # With async, the chief does not make every update.
    first, last = min(step for step in marks if step >= steps.warmup), max(marks)
    return (
        (marks[last].time - marks[first].time).total_seconds() / (last - first),
        (marks[last].sent - marks[first].sent) / (last - first),
        (marks[min(marks)].time - started).total_seconds(),
        (ended - marks[last].time).total_seconds(),
    )
