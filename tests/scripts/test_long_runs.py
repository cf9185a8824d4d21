"""Long runs use constant memory, threads and open files. As a program: a busy evaluator."""

import os
import re
import subprocess
import sys
import threading
from typing import NamedTuple

import pytest

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.system import machine
from tests.helpers import checkpoints, programs

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not sys.platform.startswith('linux'), reason='reads /proc'),
]


class _Usage(NamedTuple):
    """Resource usage of a process at one time."""

    memory: int  # KiB, resident
    threads: int
    descriptors: int  # open files
    cpu_secs: float  # since the start


def _usage(pid):
    with open(f'/proc/{pid}/status') as lines:
        status = dict(line.split(':', 1) for line in lines)
    with open(f'/proc/{pid}/stat') as stat:
        ticks = stat.read().rsplit(')', 1)[1].split()[11:13]
    memory = status.get('VmRSS', '0 kB').split()[0]  # missing while the process ends
    return _Usage(
        int(memory),
        int(status['Threads']),
        len(os.listdir(f'/proc/{pid}/fd')),
        sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK'),
    )


def _sample(command, pattern, deadline_secs):
    """Run a Python program that must succeed; return its _Usage at each line with `pattern`."""
    with subprocess.Popen(
        [sys.executable] + command,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        cwd=programs.ROOT,
        env=dict(os.environ, PYTHONPATH=programs.ROOT),
    ) as process:
        timer = threading.Timer(deadline_secs, process.kill)
        timer.daemon = True
        timer.start()
        samples = [_usage(process.pid) for line in process.stdout if re.search(pattern, line)]
        assert process.wait() == 0
        timer.cancel()
    return samples[:-1]  # the process ends after the last one


def _assert_flat(samples, warm_up):
    """Assert that memory, threads and open files do not grow after `warm_up` samples."""
    samples = samples[warm_up:]
    third = len(samples) // 3
    parts = samples[:third], samples[-third:]
    # The allocator does not always return the memory of a checkpoint: compare highest values.
    highest = [max(each.memory for each in part) for part in parts]
    rates = [(part[-1].cpu_secs - part[0].cpu_secs) / (third - 1) for part in parts]
    print(f'Memory: {highest[0]} KiB, then {highest[1]} KiB')
    print(f'CPU seconds per sample: {rates[0]:.3f}, then {rates[1]:.3f}')
    assert highest[1] <= 1.01 * highest[0], ('memory', highest)
    # A sample can fall into the next evaluation, with its threads and open files.
    for name in ('threads', 'descriptors'):
        earlier, later = ([getattr(each, name) for each in part] for part in parts)
        assert min(later) <= max(earlier), (name, max(earlier), min(later))


def test_a_trainer_does_not_grow(tmp_path, data_dir):
    """Log lines fall between summaries and checkpoints, so that no sample is taken during one."""
    samples = _sample(
        [
            programs.path('cifar10_train'),
            '--dataset=synthetic',
            '--data_dir=' + data_dir,
            f'--train_dir={tmp_path}',
            '--batch_size=2',
            '--initial_learning_rate=0.001',
            '--max_steps=20000',
            '--log_frequency=50',
            '--eval_every=0',
            '--save_summaries_steps=99',
            '--save_checkpoint_steps=999',
        ],
        r': step \d+, loss = ',
        deadline_secs=1120,
    )
    assert len(samples) == 400
    _assert_flat(samples, 40)


def _saved_again(found):
    """Yield the checkpoints; make each one look saved again before the next poll."""
    for number, ckpt in enumerate(found):
        yield ckpt
        os.utime(ckpt.path + '.index', (number, number))


def _main(data_dir, checkpoint_dir, eval_dir, polls):
    """Evaluate the checkpoint in a directory at each poll."""
    machine.set_up_tensorflow()
    evaluator = evaluation.Evaluator(dataset.read(data_dir).test)
    found = _saved_again(evaluation.checkpoints_iterator(checkpoint_dir, min_interval_secs=0))
    evaluation.evaluate_checkpoints(
        evaluator, (ckpt for _, ckpt in zip(range(int(polls)), found)), eval_dir
    )


def test_an_evaluator_does_not_grow(tmp_path, data_dir):
    checkpoints.save(tmp_path, 5)
    samples = _sample(
        [
            '-m',
            'tests.scripts.test_long_runs',
            data_dir,
            str(tmp_path),
            str(tmp_path / 'eval'),
            '500',
        ],
        ': precision @ 1 = ',
        deadline_secs=2400,  # 500 polls take 200 to 400 seconds of CPU time
    )
    assert len(samples) == 499
    _assert_flat(samples, 100)


if __name__ == '__main__':
    _main(*sys.argv[1:])
