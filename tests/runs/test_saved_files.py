"""Saving of checkpoints; list of checkpoints."""

import tensorflow.compat.v1 as tf

from cifar10.runs import checkpoint


def test_a_saver_does_not_know_of_other_names(tmp_path):
    """A user may have listed such a checkpoint, as that of --keep_best of earlier versions; a saver
    would delete it."""
    for name in ('model.ckpt-1', 'best.ckpt-2'):
        (tmp_path / (name + '.index')).touch()
    paths = [str(tmp_path / name) for name in ('model.ckpt-1', 'best.ckpt-2', 'model.ckpt-3')]
    tf.train.update_checkpoint_state(str(tmp_path), paths[1], paths)
    assert checkpoint.listed_checkpoints(str(tmp_path)) == paths[:1]


def test_without_a_list_the_saver_knows_all(tmp_path):
    """It deletes the oldest ones, as before the list was lost."""
    for step in (1, 10, 2):
        (tmp_path / f'model.ckpt-{step}.index').touch()
    paths = [str(tmp_path / f'model.ckpt-{step}') for step in (1, 2, 10)]
    assert checkpoint.listed_checkpoints(str(tmp_path), paths[-1]) == paths
