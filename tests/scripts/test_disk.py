"""Full disks, from the start or for a time. Each process mounts its own disk."""

import contextlib
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


def _last_summary(directory):
    """Return the step of the last summary; no file may be truncated."""
    return max(
        event.step
        for path in glob.glob(os.path.join(directory, 'events.*'))
        for event in tf.train.summary_iterator(path)
        if event.summary.value
    )


def _steps(directory):
    names = [name for name in os.listdir(directory) if name.endswith('.index')]
    return sorted(int(name.split('-')[1][: -len('.index')]) for name in names)


def test_full_for_a_while(tmp_path, data_dir):
    """The trainer reports the failure, continues, and saves again later.

    The end of a run is tested in test_training_faults.
    """
    directory = tmp_path / 'disk'
    directory.mkdir()
    flags = ['--save_checkpoint_steps=5', '--save_summaries_steps=2']
    trainer = programs.start(
        'cifar10_train',
        *faults.job(data_dir, directory, *flags),
        wrapper=faults.small_disk(directory, '60m'),
    )
    faults.read_until(trainer, ': step 6,')
    # The handle keeps the disk readable after the end.
    handle = os.open(faults.inside(trainer, directory), os.O_RDONLY)
    disk = f'/proc/self/fd/{handle}'
    with open(disk + '/filler', 'wb', buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    told = []
    for line in trainer.stderr:
        told.append(line)
        if 'model.ckpt-' in line:  # the first failed checkpoint
            break
    assert _steps(disk) == [5]
    os.remove(disk + '/filler')
    saved = faults.read_until(trainer, ': step ').split(': step ')[1].split(',')[0]
    faults.read_until(trainer, f': step {int(saved) + 15},')
    kept = _steps(disk)
    trainer.send_signal(signal.SIGTERM)
    status, stdout, stderr = faults.end(trainer)
    assert all(str(directory) in line for line in told + stderr.splitlines()), (told, stderr)
    assert len(kept) == 2 and kept[0] > 5 and all(step % 5 == 0 for step in kept)
    assert status == 0 and stdout.splitlines()[-1].startswith('Saved ')
    assert [name for name in os.listdir(disk) if 'temp' in name or 'tmp' in name] == []
    assert checkpoint.read_latest(disk).step == _steps(disk)[-1] > kept[-1]
    assert _last_summary(disk) > kept[0]  # summaries are also written again
    os.close(handle)
