"""Failures of the directory, the disk and the data during a run."""

import errno
import os
import re
import shutil
from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, training
from cifar10.data import dataset
from cifar10.runs.run import open_run
from tests.helpers import events, messages
from tests.helpers.small_run import RUN_LENGTH, assert_saved, fake_job, job, run_steps, train


def _obstacle(tmp_path, blocked, freed):
    """Return an after_step function that blocks the checkpoint of step 4 before `freed`."""

    def act(step):
        if step == blocked:
            (tmp_path / 'model.ckpt-4.index').mkdir()
        if step == freed:
            (tmp_path / 'model.ckpt-4.index').rmdir()

    return act


def test_training_goes_on_after_a_checkpoint_that_cannot_be_saved(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 7, after_step=_obstacle(tmp_path, 3, 5), save_checkpoint_steps=2)
    assert_saved(tmp_path, 6)
    assert_saved(tmp_path, 7)
    (told,) = capsys.readouterr().err.splitlines()
    assert re.search(
        rf': Cannot save a checkpoint \(.*; Is a directory\): make room for {tmp_path}/model.ckpt-4, .* Training continues; .*after 2 '
        'steps$',
        told,
    )


def test_the_last_checkpoint_cannot_be_saved(tmp_path, data_dir, capsys):
    with messages.raises('^Cannot save a checkpoint .*/model.ckpt-4, '):
        train(
            tmp_path, data_dir, 4, after_step=_obstacle(tmp_path, 3, None), save_checkpoint_steps=2
        )
    assert capsys.readouterr().err == ''  # the error itself is the only line
    assert_saved(tmp_path, 2)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-2')


def _remove_events(tmp_path, when):
    """Return an after_step function that removes the event files after one step."""

    def act(step):
        for path in tmp_path.glob('events.*') if step == when else ():
            path.unlink()

    return act


def test_training_goes_on_after_a_summary_that_cannot_be_written(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 6, after_step=_remove_events(tmp_path, 3), save_summaries_steps=2)
    (told,) = capsys.readouterr().err.splitlines()
    assert ': Cannot write summaries ' in told and told.endswith(messages.TRAINING_CONTINUES)
    assert {step for step, tag, _ in events.scalars(tmp_path)} == {4, 6}


def test_the_last_summary_cannot_be_written(tmp_path, data_dir, capsys, monkeypatch):
    def fill(step):
        if step == 5:
            _remove_events(tmp_path, 5)(5)
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            monkeypatch.setattr(tf.io, 'TFRecordWriter', mock.Mock(side_effect=full))

    with messages.raises_saved_without('summaries: Cannot write .*No space left'):
        train(tmp_path, data_dir, 6, after_step=fill, save_summaries_steps=2)
    assert_saved(tmp_path, 6)
    assert capsys.readouterr().err == ''  # the error itself is the only line


@pytest.mark.parametrize('replaced', [False, True])
def test_a_directory_that_is_moved_under_the_run(tmp_path, data_dir, replaced):
    def move(step):
        if step == 5:
            (tmp_path / 'run').rename(tmp_path / 'aside')
            if replaced:
                (tmp_path / 'run').mkdir()

    with messages.raises(f'^{tmp_path}/run {messages.MOVED}: put it back'):
        train(tmp_path / 'run', data_dir, 50, after_step=move, save_checkpoint_steps=4)
    assert_saved(tmp_path / 'aside', 4)
    assert not (tmp_path / 'run').exists() or os.listdir(str(tmp_path / 'run')) == []


def test_what_the_saver_may_delete(tmp_path, data_dir):
    """A list that is copied with its run names checkpoints of the other directory."""
    train(tmp_path / 'one', data_dir, 3, save_checkpoint_steps=1)
    listing = tmp_path / 'one' / 'checkpoint'
    listing.write_text(re.sub('"(model.*)"', rf'"{tmp_path}/one/\1"', listing.read_text()))
    shutil.copytree(str(tmp_path / 'one'), str(tmp_path / 'two'))
    before = {path.name: path.read_bytes() for path in (tmp_path / 'one').iterdir()}
    train(tmp_path / 'two', data_dir, 6, save_checkpoint_steps=1, max_to_keep=1)
    assert {path.name: path.read_bytes() for path in (tmp_path / 'one').iterdir()} == before
    assert_saved(tmp_path / 'two', 6)


def _train_on_data(train_dir, data_dir, after_step):
    """Train one variable on the labels of the data, without end."""
    data = dataset.read(data_dir)
    with open_run(str(train_dir), job(data).record) as run, tf.Graph().as_default():
        images, labels = cifar10_input.distorted_inputs(data, 4)
        _, labels = cifar10_input.prefetch_queue(images, labels, 2).dequeue()
        logits = tf.tile(
            tf.get_variable('weights', initializer=np.zeros([1, 10], np.float32)), [4, 1]
        )
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        opt = tf.train.GradientDescentOptimizer(0.1)
        gradients = opt.compute_gradients(loss)
        train_op = opt.apply_gradients(gradients, tf.train.get_or_create_global_step())
        with tf.control_dependencies([train_op]):
            train_op = tf.py_func(after_step, [tf.identity(tf.train.get_global_step())], [])
        step = training.Step(train_op, [loss], [gradients], tf.constant(0.1), tf.constant(b''))
        given = fake_job(RUN_LENGTH._replace(last_step=10**6))
        given.dataset = data
        run_steps(step, given, run)


def test_data_that_are_removed_under_the_run(tmp_path, own_data_dir):
    """The error is raised in one of several threads."""
    paths = dataset.read(own_data_dir).train.paths

    def remove_all(step):
        for path in paths if step == 3 else []:
            os.remove(path)

    with pytest.raises(tf.errors.NotFoundError, match=f'^{own_data_dir}/.*/data_batch_..bin; No '):
        _train_on_data(tmp_path / 'run', own_data_dir, remove_all)
