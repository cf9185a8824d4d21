"""Full and read-only disks. Each process mounts its own disk."""

import contextlib
import os
import shutil

import pytest

from cifar10.runs import checkpoint
from tests.helpers import checkpoints, faults, messages, programs

pytestmark = [pytest.mark.slow, faults.needs_mounts]

SCRIPTS = ['cifar10_train', 'cifar10_eval', 'cifar10_dataset']


def _command(script, data_dir, directory):
    """Return the words of a command that writes to the directory."""
    if script == 'cifar10_eval':
        args = faults.evaluation(data_dir, directory.parent, directory / 'out', '--run_once')
    elif script == 'cifar10_dataset':
        args = ['synthetic', f'--data_dir={directory / "out"}']
    else:
        args = faults.job(data_dir, directory / 'out', '--max_steps=2')
    return [script] + args


def test_full_or_read_only_at_the_start(tmp_path, data_dir):
    """40 kB hold no graph, no event file and no figure. Each script has a disk of its own."""
    checkpoints.save(tmp_path, 1)
    disks = [tmp_path / script for script in SCRIPTS]
    for disk in disks + [tmp_path / 'protected']:
        disk.mkdir()
    wrapper = sum([faults.small_disk(disk, '40k') for disk in disks], [])
    wrapper += faults.read_only(tmp_path / 'protected')
    commands = [_command(script, data_dir, disk) for script, disk in zip(SCRIPTS, disks)]
    protected = faults.evaluation(data_dir, tmp_path, tmp_path / 'protected', '--run_once')
    commands.append(['cifar10_eval'] + protected)
    results = programs.call_in_one_process(commands, wrapper)
    for script, disk, (status, _, stderr) in zip(SCRIPTS, disks, results):
        faults.assert_one_line(stderr, f'{script}.py: error: ', disk)
        assert status == 1, script
    status, stdout, stderr = results[-1]
    faults.assert_one_line(stderr, tmp_path / 'protected')
    assert (status, stdout) == (1, '')  # before the evaluation


def test_full_during_a_run(tmp_path, data_dir):
    """The run ends at the next checkpoint. The last one is intact, and the same command resumes."""
    directory = tmp_path / 'disk'
    directory.mkdir()
    flags = ['--save_checkpoint_steps=5', '--save_summaries_steps=2', '--max_steps=1000']
    trainer = programs.start(
        'cifar10_train',
        *faults.job(data_dir, directory, *flags),
        wrapper=faults.small_disk(directory, '60m'),
    )
    faults.read_until(trainer, ': step 6,')
    # The handle keeps the disk readable after the end.
    handle = os.open(f'/proc/{trainer.pid}/root{directory}', os.O_RDONLY)
    disk = f'/proc/self/fd/{handle}'
    with open(disk + '/filler', 'wb', buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    status, _, stderr = faults.end(trainer)
    faults.assert_one_line(stderr, 'cifar10_train.py: error: ', 'No space left on device')
    saved = checkpoint.read_latest(disk).step
    assert status == 1 and saved % 5 == 0 and saved > 0
    copied = shutil.copytree(disk, str(tmp_path / 'copied'))
    os.close(handle)
    os.remove(copied + '/filler')
    status, stdout, stderr = programs.call(
        'cifar10_train', *faults.job(data_dir, copied, f'--max_steps={saved + 2}')
    )
    assert (status, stderr) == (0, '') and messages.resuming(copied, saved) in stdout
