"""Real faults: full and read-only disks, signals, changed files."""

import concurrent.futures
import os
import subprocess
import tempfile

import numpy as np
import pytest

_OWN_MOUNTS = ['unshare', '--mount'] + (
    [] if hasattr(os, 'getuid') and os.getuid() == 0 else ['--map-root-user']
)


def job(data_dir, train_dir, *more):
    """Return the arguments of a quick training run without evaluation; `more` come last."""
    return evaluated_job(data_dir, train_dir, '--eval_every=0', *more)


def evaluated_job(data_dir, train_dir, *more):
    """Return the same for a run that ends with an evaluation."""
    return [
        '--dataset=synthetic',
        f'--data_dir={data_dir}',
        f'--train_dir={train_dir}',
        '--batch_size=4',
        '--log_frequency=1',
    ] + list(more)


def evaluation(data_dir, directory, eval_dir, *more):
    """Return the arguments of an evaluation."""
    return [
        '--dataset=synthetic',
        f'--data_dir={data_dir}',
        f'--checkpoint_dir={directory}',
        f'--eval_dir={eval_dir}',
    ] + list(more)


# Prefixes of a command.


def small_disk(directory, size):
    """Return a prefix: `directory` is a disk of `size`, as in '40k', until the process ends."""
    return _with_mount(f'mount -t tmpfs -o size={size} tmpfs "$0"', directory)


def read_only(directory):
    """Return a prefix: `directory` is read-only, also for root."""
    return _with_mount('mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"', directory)


def _with_mount(mount, directory):
    return _OWN_MOUNTS + ['sh', '-c', mount + ' && exec "$@"', str(directory)]


def _can_mount():
    try:
        return (
            subprocess.call(
                small_disk(tempfile.gettempdir(), '40k') + ['true'], stderr=subprocess.DEVNULL
            )
            == 0
        )
    except OSError:  # the command is missing
        return False


needs_mounts = pytest.mark.skipif(not _can_mount(), reason='needs permission to mount')
# Output and exit of processes.


def read_until(process, text):
    """Read stdout of the process up to the line that contains `text`; return the text read."""
    for line in process.stdout:
        if text in line:
            return line
    pytest.fail(f'The process ended without "{text}": {process.stderr.read()}')


def end(process):
    """Wait for the end; return (exit status, rest of stdout, rest of stderr).

    Unlike communicate, it keeps the text that is already buffered.
    """
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stderr = pool.submit(process.stderr.read)
        stdout = '' if process.stdout.closed else process.stdout.read()
        return process.wait(), stdout, stderr.result()


def assert_one_line(stderr, *parts):
    """Assert that stderr is one line with these parts, and no traceback."""
    lines = stderr.splitlines()
    assert len(lines) == 1 and 'Traceback' not in stderr, stderr
    for part in parts:
        assert str(part) in stderr, stderr


# Files.


def relabel(path, label):
    """Give every record of a CIFAR-10 file this label; restore its modification time."""
    before = os.stat(path)
    records = np.memmap(path, np.uint8, mode='r+').reshape(-1, 3073)
    records[:, 0] = label
    records.flush()
    while os.stat(path).st_ctime_ns == before.st_ctime_ns:  # until the clock ticks
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
