"""Full disks, from the start or for a time. Each process mounts its own disk."""

import glob
import os
import signal

import pytest
import tensorflow.compat.v1 as tf

from cifar10.runs import checkpoint
from tests.helpers import checkpoints, faults, programs

pytestmark = [pytest.mark.slow, faults.needs_mounts]

SCRIPTS = [
    'cifar10_train',
    'cifar10_classic',
    'cifar10_eval',
    'cifar10_dataset',
]


def _command(script, data_dir, directory):
    """Return the words of a command that writes to the directory."""
    if script == 'cifar10_eval':
        args = faults.evaluation(data_dir, directory.parent, directory / 'out', '--run_once')
    elif script == 'cifar10_dataset':
        args = ['synthetic', f'--data_dir={directory / "out"}']
    else:
        job = faults.classic_job if script == 'cifar10_classic' else faults.job
        args = job(data_dir, directory / 'out', '--max_steps=2')
    return [script] + args


def test_full_at_the_start(tmp_path, data_dir):
    """40 kB hold no graph, no event file and no figure. Each script has a disk of its own."""
    checkpoints.save(tmp_path, 1)
    disks, wrapper = [tmp_path / script for script in SCRIPTS], []
    for disk in disks:
        disk.mkdir()
        wrapper += faults.small_disk(disk, '40k')
    commands = [_command(script, data_dir, disk) for script, disk in zip(SCRIPTS, disks)]
    results = programs.call_in_one_process(commands, wrapper)
    for script, disk, (status, _, stderr) in zip(SCRIPTS, disks, results):
        faults.assert_one_line(stderr, f'{script}.py: error: ', disk)
        assert status == 1, script


class _Disk:
    """Trainer on its own disk, which stays readable after the end."""

    def __init__(self, data_dir, directory, *args):
        directory.mkdir()
        self._directory = directory
        self.process = programs.start(
            'cifar10_train',
            *faults.job(
                data_dir,
                directory,
                '--save_checkpoint_steps=5',
                '--max_to_keep=2',
                '--save_summaries_steps=2',
                *args,
            ),
            wrapper=faults.small_disk(directory, '60m'),
        )

    def fill(self):
        """Wait for a checkpoint, then fill the disk."""
        faults.read_until(self.process, ': step 6,')
        self._handle = os.open(faults.inside(self.process, self._directory), os.O_RDONLY)
        self.path = f'/proc/self/fd/{self._handle}'
        self._filler = os.open(os.path.join(self.path, 'filler'), os.O_WRONLY | os.O_CREAT)
        while True:
            try:
                os.write(self._filler, bytes(4096))
            except OSError:
                return

    def make_room(self):
        """Remove the file that fills the disk."""
        os.remove(os.path.join(self.path, 'filler'))
        os.close(self._filler)

    def read_save_error(self):
        """Read stderr up to the first failed checkpoint."""
        for line in self.process.stderr:
            self.assert_told(line)
            if 'model.ckpt-' in line:
                return

    def assert_told(self, lines):
        """Assert that each line names the directory."""
        assert all(str(self._directory) in line for line in lines.splitlines()), lines

    def end(self):
        """Request a stop; return (exit status, rest of stdout, rest of stderr)."""
        self.process.send_signal(signal.SIGTERM)
        return faults.end(self.process)

    def names(self):
        """Return the file names on the disk."""
        return os.listdir(self._handle)

    def close(self):
        """Unmount the disk."""
        os.close(self._handle)


def _last_summary(directory):
    """Return the step of the last summary; no file may be truncated."""
    return max(
        event.step
        for path in glob.glob(os.path.join(directory, 'events.*'))
        for event in tf.train.summary_iterator(path)
        if event.summary.value
    )


def _steps(names):
    return sorted(
        int(name.split('-')[1][: -len('.index')]) for name in names if name.endswith('.index')
    )


def test_full_for_a_while(tmp_path, data_dir):
    """The trainer reports the failure, continues, and saves again later.

    The end of a run is tested in test_training_faults.
    """
    disk = _Disk(data_dir, tmp_path / 'disk')
    disk.fill()
    disk.read_save_error()
    assert _steps(disk.names()) == [5]
    disk.make_room()
    saved = faults.read_until(disk.process, ': step ').split(': step ')[1].split(',')[0]
    faults.read_until(disk.process, f': step {int(saved) + 15},')
    kept = _steps(disk.names())
    status, stdout, stderr = disk.end()
    disk.assert_told(stderr)
    assert len(kept) == 2 and kept[0] > 5 and all(step % 5 == 0 for step in kept)
    assert status == 0 and stdout.splitlines()[-1].startswith('Saved ')
    assert [name for name in disk.names() if 'temp' in name or 'tmp' in name] == []
    assert checkpoint.read_latest(disk.path).step == _steps(disk.names())[-1] > kept[-1]
    assert _last_summary(disk.path) > kept[0]  # summaries are also written again
    disk.close()
