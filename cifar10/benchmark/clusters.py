"""Measurements of local clusters, compared with one process with the same number of towers."""

import datetime
import os
import sys
import tempfile

from cifar10.benchmark import cluster_estimate, processes
from cifar10.benchmark.cluster_estimate import ALLREDUCE, ASYNC, AVERAGE, AVERAGE_PERIOD, LOCAL


def measure_distributed(unused_formulation, params):
    """Measure throughput and bytes per update of each mode, with 2 and 4 workers.

    Args:
      unused_formulation: OURS.
      params: a BenchmarkParams.

    Returns:
      A dict from metric name to number.
    """
    job, metrics = params.job, {}
    bytes_per_server = cluster_estimate.server_bytes(1, job.dataset.num_classes)
    for num_workers in (2, 4):
        for mode in cluster_estimate.MEASURED_MS:  # LOCAL first
            seconds, sent, start, end = _run(mode, num_workers, params)
            # An async update uses the batch of one worker.
            batches = 1 if mode == ASYNC else num_workers
            name = f'{mode}, {num_workers} workers'
            if mode == LOCAL:
                name = f'one process, {num_workers} towers'
                local_seconds, local_start = seconds * num_workers, start
            metrics['updates/sec, ' + name] = 1 / seconds
            metrics['images/sec, ' + name] = batches * job.hparams.batch_size / seconds
            if mode == LOCAL:
                continue
            metrics[f'time of {num_workers} batches / one process, {name}'] = (
                seconds / batches * num_workers**2 / local_seconds
            )
            metrics['extra seconds to the first update, ' + name] = start - local_start
            metrics['seconds from the last update to the end, ' + name] = end
            metrics['MB per update, ' + name] = sent / 1e6
            worker, server = cluster_estimate.traffic(mode, num_workers, bytes_per_server)
            metrics['MB per update by formula, ' + name] = (batches * worker + server) / 1e6
    return metrics


def _run(mode, num_workers, params):
    """Run a cluster, or one process with the same number of towers.

    Returns:
      Seconds per update; bytes per update over the loopback interface; seconds from the start of
      the processes to the first update; seconds from the last update to the end of the processes.
    """
    steps = params.steps_or_default(40, 120)
    last_step = sum(steps)
    with tempfile.TemporaryDirectory() as train_dir:
        flags = params.data_flags + [
            '--train_dir=' + train_dir,
            f'--max_steps={last_step}',
            f'--batch_size={params.job.hparams.batch_size}',
            '--log_frequency=1',
            f'--save_summaries_steps={2 * last_step}',
            f'--save_checkpoint_steps={2 * last_step}',
            '--eval_every=0',
        ]
        if mode == LOCAL:
            script, script_flags = 'cifar10_multi_gpu_train.py', [f'--num_gpus={num_workers}']
        else:
            script = 'cifar10_launch.py'
            script_flags = [f'--num_ps={mode != ALLREDUCE:d}', f'--num_workers={num_workers}']
            script_flags += ['--max_restarts=0', '--', '--mode=' + mode]
            # One thread per worker simulates one machine per worker.
            flags += ['--intra_op_threads=1', '--inter_op_threads=1']
        if mode == AVERAGE:
            flags.append(f'--average_period={AVERAGE_PERIOD}')
        command = [sys.executable, os.path.join(params.scripts_dir, script)] + script_flags + flags
        started = datetime.datetime.now()
        logged_steps, _ = processes.run_trainer(
            command, steps.warmup + 1, processes.terminate_gracefully
        )
        ended = datetime.datetime.now()
    # An async chief logs only its own updates.
    first, last = min(step for step in logged_steps if step >= steps.warmup), max(logged_steps)
    return (
        (logged_steps[last].time - logged_steps[first].time).total_seconds() / (last - first),
        (logged_steps[last].bytes_sent - logged_steps[first].bytes_sent) / (last - first),
        (logged_steps[min(logged_steps)].time - started).total_seconds(),
        (ended - logged_steps[last].time).total_seconds(),
    )
