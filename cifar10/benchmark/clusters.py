"""Measurements of local clusters, compared with one process with the same number of towers."""

import os
import sys
import tempfile

from cifar10.benchmark import processes
from cifar10.distributed.cluster import MODES


def measure_distributed(unused_formulation, settings):
    """Measure throughput and bytes per update of each mode, with 2 and 4 workers.

    Args:
      unused_formulation: OURS.
      settings: a BenchmarkSettings.

    Returns:
      A dict from metric name to number.
    """
    batch_size, metrics = settings.job.hparams.batch_size, {}
    for num_workers in (2, 4):
        name = f'one process, {num_workers} towers'
        local_seconds, _ = _run(None, num_workers, settings)
        metrics['updates/sec, ' + name] = 1 / local_seconds
        metrics['examples/sec, ' + name] = num_workers * batch_size / local_seconds
        for mode in MODES:
            seconds, sent = _run(mode, num_workers, settings)
            # An async update uses the batch of one worker.
            batches = 1 if mode == 'async' else num_workers
            name = f'{mode}, {num_workers} workers'
            metrics['updates/sec, ' + name] = 1 / seconds
            metrics['examples/sec, ' + name] = batches * batch_size / seconds
            metrics[f'time of {num_workers} batches / one process, {name}'] = (
                seconds / batches * num_workers / local_seconds
            )
            metrics['MB per update, ' + name] = sent / 1e6
    return metrics


def _run(mode, num_workers, settings):
    """Run a cluster or, without a mode, one process with the same number of towers.

    Returns:
      Seconds per update; bytes per update over the loopback interface.
    """
    steps = settings.steps_or_default(40, 120)
    last_step = sum(steps)
    with tempfile.TemporaryDirectory() as train_dir:
        flags = settings.data_flags + [
            '--train_dir=' + train_dir,
            f'--max_steps={last_step}',
            f'--batch_size={settings.job.hparams.batch_size}',
            '--log_frequency=1',
            f'--save_summaries_steps={2 * last_step}',
            f'--save_checkpoint_steps={2 * last_step}',
            '--eval_every=0',
        ]
        if mode is None:
            script, script_flags = 'cifar10_multi_gpu_train.py', [f'--num_gpus={num_workers}']
        else:
            script = 'cifar10_launch.py'
            script_flags = [f'--num_ps={mode != "allreduce":d}', f'--num_workers={num_workers}']
            script_flags += ['--max_restarts=0', '--', '--mode=' + mode]
            # One thread per worker simulates one machine per worker.
            flags += ['--intra_op_threads=1', '--inter_op_threads=1']
        command = (
            [sys.executable, os.path.join(settings.scripts_dir, script)] + script_flags + flags
        )
        logged_steps, _ = processes.run_trainer(
            command, steps.warmup + 1, processes.terminate_gracefully
        )
    # An async chief logs only its own updates.
    first, last = min(step for step in logged_steps if step >= steps.warmup), max(logged_steps)
    return (
        (logged_steps[last].time - logged_steps[first].time).total_seconds() / (last - first),
        (logged_steps[last].bytes_sent - logged_steps[first].bytes_sent) / (last - first),
    )
