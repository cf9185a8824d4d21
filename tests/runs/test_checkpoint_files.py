"""Saving of checkpoints; list of checkpoints."""

import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10.runs import checkpoint_files


def test_a_parameter_server_that_is_lost_while_saving(tmp_path, monkeypatch):
    """The error is not that of a full disk."""

    def fail(saver, session, prefix, step):
        (tmp_path / 'model.ckpt-3.index.tempstate1').write_text('')
        raise tf.errors.UnavailableError(None, None, 'Socket closed')

    monkeypatch.setattr(tf.train.Saver, 'save', fail)
    tf.get_variable('weights', [1])
    with pytest.raises(tf.errors.UnavailableError):
        checkpoint_files.save(tf.train.Saver(), None, str(tmp_path), 3)
    assert os.listdir(str(tmp_path)) == []


def test_a_saver_does_not_know_of_the_best_one(tmp_path):
    """A user may have listed it; a saver would delete it."""
    for name in ('model.ckpt-1', 'best.ckpt-2'):
        (tmp_path / (name + '.index')).touch()
    paths = [str(tmp_path / name) for name in ('model.ckpt-1', 'best.ckpt-2', 'model.ckpt-3')]
    tf.train.update_checkpoint_state(str(tmp_path), paths[1], paths)
    assert checkpoint_files.listed_checkpoints(str(tmp_path)) == paths[:1]
