"""Faults for real: disks that are full or read-only, signals, files of other kinds, checkpoints
with other values."""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.runs import checkpoint

_OWN_MOUNTS = ['unshare', '--mount'] + (
    [] if hasattr(os, 'getuid') and os.getuid() == 0 else ['--map-root-user']
)
FIFO_SECS = 20  # then a FIFO gives way, and the test fails


def job(data_dir, train_dir, *more):
    """The arguments of a training run whose steps are quick, without an evaluation; `more` come
    last."""
    return classic_job(data_dir, train_dir, '--eval_every=0', *more)


def classic_job(data_dir, train_dir, *more):
    """The same for the classic formulation, which evaluates nothing."""
    return [
        '--dataset=synthetic',
        f'--data_dir={data_dir}',
        f'--train_dir={train_dir}',
        '--batch_size=4',
        '--log_frequency=1',
    ] + list(more)


def evaluation(data_dir, directory, eval_dir, *more):
    """The arguments of an evaluation."""
    return [
        '--dataset=synthetic',
        f'--data_dir={data_dir}',
        f'--checkpoint_dir={directory}',
        f'--eval_dir={eval_dir}',
    ] + list(more)


# Words in front of a command.


def shell(before='', after=''):
    """The command after what `before` does, with the redirections `after`."""
    return ['sh', '-c', f'{before} exec "$@" {after}', 'sh']


def small_disk(directory, size):
    """The command sees a disk of its own in `directory`, of so many bytes, as in '40k'. It goes
    away with the process."""
    return _with_mount(f'mount -t tmpfs -o size={size} tmpfs "$0"', directory)


def read_only(directory):
    """The command cannot write to `directory`, not even as root."""
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
    except OSError:  # there is no such command
        return False


needs_mounts = pytest.mark.skipif(not _can_mount(), reason='nothing can be mounted here')
needs_proc = pytest.mark.skipif(
    not os.path.exists('/proc/self/status'),
    reason='this system does not show its processes in /proc',
)


def inside(process, path):
    """The path as the process sees it, in mounts of its own."""
    return f'/proc/{process.pid}/root{path}'


# What processes say and how they end.


def read_until(process, text):
    """Reads the process's stdout up to the line that contains `text`, and returns it."""
    for line in process.stdout:
        if text in line:
            return line
    pytest.fail(f'The process ended without "{text}": {process.stderr.read()}')


def end(process):
    """Waits for the end; returns (exit status, the rest of stdout, the rest of stderr). Unlike
    communicate, it loses nothing."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stderr = pool.submit(process.stderr.read)
        stdout = '' if process.stdout.closed else process.stdout.read()
        return process.wait(), stdout, stderr.result()


def assert_one_line(stderr, *parts):
    """Asserts that stderr is one line with these parts, and no traceback."""
    lines = stderr.splitlines()
    assert len(lines) == 1 and 'Traceback' not in stderr, stderr
    for part in parts:
        assert str(part) in stderr, stderr


def send(process, number):
    """Sends a signal, and returns when the process has taken it: two that wait together would be
    one, or come in another order."""
    process.send_signal(number)
    while _waits(process, number):
        pass


def _waits(process, number):
    try:
        with open(f'/proc/{process.pid}/status') as lines:
            status = dict(line.split(':', 1) for line in lines)
    except OSError:  # it has ended
        return False
    return bool(int(status['ShdPnd'], 16) >> number - 1 & 1) and not status[
        'State'
    ].strip().startswith('Z')


# Files.


def snapshot(directory):
    """What is in a directory: a dict from paths to contents, and for what is no file, to its
    mode."""
    found = {}
    for parent, directories, names in os.walk(str(directory)):
        for name in directories + names:
            path = os.path.join(parent, name)
            found[path] = os.lstat(path).st_mode
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, 'rb') as content:
                    found[path] = content.read()
    return found


def relabel(path, label):
    """Gives every record of a data file of CIFAR-10 this label, and puts its time of modification
    back."""
    before = os.stat(path)
    records = np.memmap(path, np.uint8, mode='r+').reshape(-1, 3073)
    records[:, 0] = label
    records.flush()
    while os.stat(path).st_ctime_ns == before.st_ctime_ns:  # a clock ticks
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def put_fifo(path):
    """Puts a FIFO in the place of what is there."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    os.mkfifo(path)


@contextlib.contextmanager
def fifo(path):
    """A FIFO that nobody writes to, while entered: who waits for it nevertheless is released after
    a while, and has failed."""
    put_fifo(path)
    # Another process, because who waits may hold Python's lock.
    release = subprocess.Popen(
        ['sh', '-c', f'sleep {FIFO_SECS}; touch "$0.released"; while : > "$0"; do :; done', path],
        start_new_session=True,
    )
    try:
        yield
        assert not os.path.exists(path + '.released'), 'it has waited for ' + path
    finally:
        os.killpg(release.pid, signal.SIGKILL)
        release.wait()
        os.remove(path)


def save_with(path, new_path, **values):
    """Saves a copy of a checkpoint in which some variables have other values."""
    values = dict(checkpoint.read(path).values, **values)
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {name: tf.Variable(np.asarray(value)) for name, value in values.items()}
        session.run(tf.global_variables_initializer())
        tf.train.Saver(variables).save(session, new_path, write_state=False, write_meta_graph=False)


def copy(directory, new_directory):
    """Copies a directory with what is in it; returns the new path as a string."""
    return shutil.copytree(str(directory), str(new_directory))
