"""Checkpoints that a saver may delete."""

import types

import tensorflow.compat.v1 as tf

from cifar10.runs import run


def test_a_resumed_saver_deletes_what_it_saved_only(tmp_path, monkeypatch):
    """Other names, other directories and checkpoints that it had to keep are not in its list."""
    (tmp_path / 'other').mkdir()
    for name in (
        'model.ckpt-1',
        'model.ckpt-2',
        'best.ckpt-2',
        'other/model.ckpt-3',
        'model.ckpt-10',
    ):
        (tmp_path / (name + '.index')).touch()
    names = ['best.ckpt-2', 'model.ckpt-2', 'other/model.ckpt-3', 'model.ckpt-7']
    listed = [str(tmp_path / name) for name in names]
    tf.train.update_checkpoint_state(str(tmp_path), listed[1], listed)
    resumed = types.SimpleNamespace(path=str(tmp_path / 'model.ckpt-10'), values={})
    tf.train.get_or_create_global_step()
    monkeypatch.setattr(run.checkpoint, 'misfit', lambda ckpt, variables: None)
    saver = tf.train.Saver()
    assert run.Run(str(tmp_path), None, resumed, []).restored_path(saver) == resumed.path
    assert saver.last_checkpoints == [listed[1], resumed.path]
