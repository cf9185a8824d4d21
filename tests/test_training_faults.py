"""Failures of the directory and the disk during a run."""

import re
import shutil

import pytest
import tensorflow.compat.v1 as tf

from tests.helpers.small_run import assert_saved, train


def test_a_checkpoint_that_cannot_be_saved(tmp_path, data_dir):
    """The run ends. The last checkpoint is intact, and the same command resumes."""
    obstacle = tmp_path / 'model.ckpt-4.index'
    with pytest.raises(tf.errors.OpError, match='model.ckpt-4.index'):
        train(
            tmp_path,
            data_dir,
            7,
            after_step=lambda step: obstacle.mkdir() if step == 3 else None,
            save_checkpoint_steps=2,
        )
    assert_saved(tmp_path, 2)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-2')
    obstacle.rmdir()
    train(tmp_path, data_dir, 7, save_checkpoint_steps=2)
    assert_saved(tmp_path, 7)


def test_what_the_saver_may_delete(tmp_path, data_dir):
    """A list that is copied with its run names checkpoints of the other directory."""
    train(tmp_path / 'one', data_dir, 3, save_checkpoint_steps=1)
    listing = tmp_path / 'one' / 'checkpoint'
    listing.write_text(re.sub('"(model.*)"', rf'"{tmp_path}/one/\1"', listing.read_text()))
    shutil.copytree(str(tmp_path / 'one'), str(tmp_path / 'two'))
    before = {path.name: path.read_bytes() for path in (tmp_path / 'one').iterdir()}
    train(tmp_path / 'two', data_dir, 9, save_checkpoint_steps=1)
    assert {path.name: path.read_bytes() for path in (tmp_path / 'one').iterdir()} == before
    assert_saved(tmp_path / 'two', 9)
