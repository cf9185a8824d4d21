"""Runs resumed, moved aside or refused."""

import dataclasses
import glob
import math
import os
import re

from absl import flags
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.cli import training_flags, training_job
from cifar10.config import CLASSIC, RunSettings
from cifar10.data import dataset
from cifar10.runs import checkpoint, run_record
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_train
from cifar10.system import directories
from tests.helpers import listing, messages, programs
from tests.helpers.small_run import assert_saved, job, train


def test_nothing_is_left_to_do(tmp_path, data_dir):
    train(tmp_path, data_dir, 3)
    before = {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))}
    train(tmp_path, data_dir, 3)
    assert {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))} == before


def test_the_latest_five_checkpoints_are_kept_over_starts(tmp_path, data_dir):
    for steps in range(1, 8):
        train(tmp_path, data_dir, steps)
    assert sorted(os.path.basename(path) for path in glob.glob(str(tmp_path / '*.index'))) == [
        f'model.ckpt-{step}.index' for step in range(3, 8)
    ]


def test_fresh_moves_the_old_run_aside(tmp_path, data_dir, capsys):
    train(tmp_path / 'run', data_dir, 3)
    train(str(tmp_path / 'run') + '/', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)
    (aside,) = glob.glob(str(tmp_path / 'run.*'))
    assert f'Moved the run in {tmp_path / "run"} to {aside}\n' in capsys.readouterr().out
    train(aside, data_dir, 4)  # The old run can be resumed in its new place.
    assert_saved(aside, 4)
    assert tf.train.latest_checkpoint(str(tmp_path / 'run')).endswith('run/model.ckpt-2')


def test_the_notes_are_printed_before_the_plan(tmp_path, data_dir, capsys):
    train(tmp_path / 'run', data_dir, 1)
    with programs.own_flags():
        training_flags.define()
        flags.FLAGS(['a script', '--fresh', f'--train_dir={tmp_path / "run"}'])
        capsys.readouterr()
        with training_job.start_run(job(data_dir)) as opened:
            (note,) = opened.notes
    assert note.startswith('Moved the run in ')
    assert capsys.readouterr().out.splitlines() == [note, *opened.plan]


def test_fresh_in_the_working_directory(tmp_path, data_dir, monkeypatch):
    train(tmp_path / 'run', data_dir, 3)
    monkeypatch.chdir(tmp_path / 'run')
    train('.', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)


@pytest.mark.parametrize('fresh', [False, True])
def test_another_process_trains_in_the_directory(tmp_path, data_dir, fresh):
    train(tmp_path, data_dir, 1)
    with directories.lock(str(tmp_path)), messages.raises(
        f'Another process is training in {tmp_path}'
    ):
        train(tmp_path, data_dir, 2, fresh=fresh)
    assert_saved(tmp_path, 1)


def test_fresh_in_a_directory_without_a_run(tmp_path, data_dir):
    (tmp_path / 'letters.txt').write_text('dear')
    train(tmp_path, data_dir, 1, fresh=True)
    assert (tmp_path / 'letters.txt').exists()


def test_a_bad_checkpoint_is_not_overwritten(tmp_path, data_dir):
    train(tmp_path, data_dir, 2)
    for step in (0, 2):
        os.truncate(str(tmp_path / f'model.ckpt-{step}.data-00000-of-00001'), 5)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with messages.raises('-2 is damaged.* There is no other intact checkpoint: put back a copy'):
        train(tmp_path, data_dir, 3)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_is_resumed_from_the_newest_intact_checkpoint(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 2, save_checkpoint_steps=1)
    os.truncate(str(tmp_path / 'model.ckpt-2.index'), 5)
    train(tmp_path, data_dir, 4)
    output = capsys.readouterr().out
    damaged = rf'{tmp_path}/model.ckpt-2 is damaged \([^\n]*\). Using {tmp_path}/model.ckpt-1\n'
    assert re.search(damaged, output)
    assert messages.resuming(tmp_path, 1) in output
    assert_saved(tmp_path, 4)


def test_leftovers_of_a_full_disk_are_removed(tmp_path, data_dir):
    train(tmp_path, data_dir, 1)
    for name in ('model.ckpt-7.data-00000-of-00001.tempstate123', 'notes.tempstate1'):
        (tmp_path / name).write_text('x')
    train(tmp_path, data_dir, 2)
    assert [path.name for path in tmp_path.glob('*tempstate*')] == ['notes.tempstate1']


@pytest.mark.parametrize(
    'max_steps, num_epoch_steps', [(2, math.inf), (1, math.inf), (1000, 2), (2, 1)]
)
def test_a_complete_run(tmp_path, data_dir, capsys, max_steps, num_epoch_steps):
    """train(), also without a script, prints what extends a run of two steps."""
    data = dataset.read(data_dir)
    hparams = dataclasses.replace(CLASSIC, batch_size=8)
    settings = RunSettings(max_steps=2, eval_every=0)
    first = training.create_job(data, hparams, settings=settings)
    second = first._replace(
        network=first.network._replace(
            hparams=dataclasses.replace(hparams, epochs=num_epoch_steps * 8 / first.num_examples)
        ),
        settings=dataclasses.replace(settings, max_steps=max_steps),
    )
    for each in (first, second):
        capsys.readouterr()
        with open_run(str(tmp_path), training.record(each)) as opened:
            cifar10_train.train(each, opened)
    last_step = min(max_steps, num_epoch_steps)
    assert capsys.readouterr().out == messages.nothing_to_do(tmp_path, 2, last_step)
    assert checkpoint.read_latest(str(tmp_path)).step == 2


def test_a_checkpoint_of_another_network(tmp_path, data_dir):
    with tf.Graph().as_default(), tf.Session() as session:
        global_step = tf.train.get_or_create_global_step()
        global_step.load(1, session)
        tf.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 1)
    before = listing.names(tmp_path)
    complaint = 'does not fit: it has no weights: %s, give another --train_dir, or set --fresh$'
    with messages.raises(complaint % 'give the hyperparameters of this run'):
        train(tmp_path, data_dir, 3)
    assert listing.names(tmp_path) == before
    record = dataclasses.replace(training.record(job(data_dir)), network_checksum='another')
    run_record.write(str(tmp_path), record)
    with messages.raises(complaint % 'undo the change in model'):
        train(tmp_path, data_dir, 3)
