"""Signals and closed pipes in every phase of the scripts."""

import os
import pty
import re
import shutil
import signal
import sys
import threading
import time

import pytest

from cifar10.data import dataset, verification
from cifar10.runs import checkpoint
from tests.helpers import faults, listing, messages, programs

pytestmark = pytest.mark.slow


def _assert_interrupted(process, number):
    status, _, stderr = faults.end(process)
    assert status == 128 + number
    assert re.fullmatch(rf'cifar10_\w+\.py: interrupted \({number.name}\)\n', stderr)


def test_the_same_signal_twice(tmp_path, data_dir):
    """`timeout` signals the process and then its group; the kernel and the shell signal the end of
    a terminal."""
    gaps = [0, 0.0001, 0.001, 0.02, 0.05]
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM]
    trainers = [
        programs.start('cifar10_train', *faults.job(data_dir, tmp_path / str(gap))) for gap in gaps
    ]
    for process, number, gap in zip(trainers, numbers, gaps):
        line = faults.read_until(process, ': step 3,')
        process.send_signal(number)
        time.sleep(gap)
        process.send_signal(number)
        status, stdout, stderr = faults.end(process)
        saved = checkpoint.read_latest(str(tmp_path / str(gap)))
        assert (status, stderr) == (0, '')
        assert stdout.endswith(f'Saved {saved.path}\n')
        assert int(messages.log_steps(line + stdout)[-1]) == saved.step


def test_while_the_queue_is_filled(tmp_path, data_dir):
    """The files are long, so that filling takes time; they are sparse. This process comes first."""
    large = shutil.copytree(data_dir, str(tmp_path / 'data'))
    for path in dataset.read(large).train.paths:
        os.truncate(path, 40000 * 3073)
    process = programs.start(
        'cifar10_train', *faults.job(large, tmp_path / 'run'), wrapper=['nice', '-n', '19']
    )
    faults.read_until(process, 'Filling ')
    process.send_signal(signal.SIGTERM)
    _assert_interrupted(process, signal.SIGTERM)  # no step is lost


def test_before_the_first_step(tmp_path, data_dir):
    """During the drawing of the data set, and during graph construction."""
    writer = programs.start('cifar10_dataset', 'synthetic', f'--data_dir={tmp_path / "data"}')
    faults.read_until(writer, 'Writing the synthetic data set')
    writer.send_signal(signal.SIGTERM)
    _assert_interrupted(writer, signal.SIGTERM)
    builder = programs.start(
        'cifar10_multi_gpu_train', '--num_gpus=40', *faults.job(data_dir, tmp_path / 'run')
    )
    faults.read_until(builder, 'End: ')
    builder.send_signal(signal.SIGINT)
    assert faults.end(builder)[0] == -signal.SIGINT
    # Python ignores an exception in a __del__; then the data set is complete.
    assert (
        listing.names(tmp_path / 'data') == []
        or verification.verify(dataset.read(str(tmp_path / 'data'))).train.num_examples == 50000
    )
    assert checkpoint.read_latest(str(tmp_path / 'run')) is None


def test_a_waiting_evaluator(tmp_path, data_dir):
    evaluation = faults.evaluation(data_dir, tmp_path, tmp_path / 'eval')
    waiting = programs.start('cifar10_eval', *evaluation)
    faults.read_until(waiting, 'Waiting for a checkpoint in ')
    waiting.send_signal(signal.SIGINT)
    assert faults.end(waiting)[0] == -signal.SIGINT


def test_nobody_reads_the_output(tmp_path, data_dir):
    """As with `| head`: a trainer saves if there is a step to save; other scripts end."""
    early, trainer = [
        programs.start('cifar10_train', *faults.job(data_dir, tmp_path / name))
        for name in ('early', 'run')
    ]
    for _ in range(3):
        early.stdout.readline()
    early.stdout.close()
    faults.read_until(trainer, ': step 3,')
    trainer.stdout.close()
    for process in (early, trainer):
        status, _, stderr = faults.end(process)
        assert stderr == '' and status in (0, 128 + signal.SIGPIPE)
    assert checkpoint.read_latest(str(tmp_path / 'run')).step >= 3


def test_a_closed_terminal(tmp_path, data_dir):
    """The last step is saved, although the output fails."""
    pid, terminal = pty.fork()
    if not pid:
        command = faults.job(data_dir, tmp_path / 'run')
        os.execv(sys.executable, [sys.executable, programs.path('cifar10_train'), *command])
    deadline = threading.Timer(programs.DEADLINE_SECS, os.kill, (pid, signal.SIGKILL))
    deadline.start()
    shown = b''
    while b': step 5,' not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    deadline.cancel()
    assert (os.WIFEXITED(status), os.WEXITSTATUS(status)) == (True, 0)
    assert checkpoint.read_latest(str(tmp_path / 'run')).step >= 5
