"""Finding and reading checkpoints, also while a trainer works on them."""
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.runs import checkpoint

DATA = '.data-00000-of-00001'


def _save(directory, step, global_step=True, name='model.ckpt'):
    """Saves the numbers (1, 2, 3), and the step; returns the path."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable('numbers', initializer=np.array([1, 2, 3], np.float32))
        if global_step:
            tf.get_variable('global_step', initializer=np.int64(step))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, os.path.join(str(directory), name), step)


def _list(directory, path):
    (directory / 'checkpoint').write_text('model_checkpoint_path: "%s"\n' % path)


def test_an_empty_or_missing_directory(tmp_path):
    for directory in (tmp_path, tmp_path / 'missing'):
        assert checkpoint.latest(str(directory)) is None
        assert checkpoint.read_latest(str(directory)) is None


def test_the_latest_is_the_listed_one(tmp_path):
    paths = [_save(tmp_path, step) for step in (1, 2)]
    assert checkpoint.latest(str(tmp_path)) == paths[1]
    _list(tmp_path, 'model.ckpt-1')
    assert checkpoint.latest(str(tmp_path)) == paths[0]


def test_what_a_checkpoint_holds(tmp_path):
    path = _save(tmp_path, 7)
    saved = checkpoint.read_latest(str(tmp_path))
    assert (saved.path, saved.step, set(saved.values)) == (path, 7, {'numbers', 'global_step'})
    assert saved.values['numbers'].tolist() == [1, 2, 3]


@pytest.mark.parametrize('name, step', [('model.ckpt', 9), ('model-of-mine', 9)])
def test_the_step_in_the_name(tmp_path, name, step):
    path = _save(tmp_path, step, global_step=False, name=name)
    assert checkpoint.read(path).step == step


def test_the_step_in_the_checkpoint_counts(tmp_path):
    path = _save(tmp_path, 7)
    for suffix in (DATA, '.index'):
        os.rename(path + suffix, str(tmp_path / 'other-3') + suffix)
    assert checkpoint.read(str(tmp_path / 'other-3')).step == 7


def test_no_step_at_all(tmp_path):
    path = _save(tmp_path, 7, global_step=False)
    for suffix in (DATA, '.index'):
        os.rename(path + suffix, str(tmp_path / 'best') + suffix)
    assert checkpoint.read(str(tmp_path / 'best')).step == 0


def test_a_list_that_names_nothing(tmp_path):
    _save(tmp_path, 1)
    for content in ('', 'nonsense'):
        (tmp_path / 'checkpoint').write_text(content)
        with pytest.raises(UserError, match='^%s/checkpoint is damaged: it must name a checkpoint' % tmp_path):
            checkpoint.latest(str(tmp_path))


def test_checkpoints_without_a_list(tmp_path):
    _save(tmp_path, 1)
    (tmp_path / 'checkpoint').unlink()
    with pytest.raises(UserError, match='^%s holds checkpoints, but not the file "checkpoint"' % tmp_path):
        checkpoint.latest(str(tmp_path))


def test_a_listed_checkpoint_that_is_missing(tmp_path):
    _save(tmp_path, 1)
    _list(tmp_path, 'model.ckpt-2')
    with pytest.raises(UserError, match='^{0}/model.ckpt-2 is missing, though {0}/checkpoint names it'.format(tmp_path)):
        checkpoint.read_latest(str(tmp_path))


@pytest.mark.parametrize('suffix', [DATA, '.index'])
@pytest.mark.parametrize('size', [0, 5])
def test_a_damaged_checkpoint(tmp_path, suffix, size):
    path = _save(tmp_path, 1)
    os.truncate(path + suffix, size)
    complaint = r'^The checkpoint %s is damaged \([^\n]+\): use an older one by naming it in %s/checkpoint$' % (path, tmp_path)
    with pytest.raises(UserError, match=complaint):
        checkpoint.read_latest(str(tmp_path))


def test_a_changed_byte(tmp_path):
    path = _save(tmp_path, 1)
    with open(path + DATA, 'r+b') as content:
        byte = content.read(1)[0]
        content.seek(0)
        content.write(bytes([byte ^ 1]))
    with pytest.raises(UserError, match='is damaged'):
        checkpoint.read(path)


def test_the_listed_checkpoint_is_replaced(tmp_path, monkeypatch):
    """Between the look at the list and that at the checkpoint."""
    first = _save(tmp_path, 1)
    exists = tf.train.checkpoint_exists

    def replace_and_look(path):
        if path == first:
            _save(tmp_path, 2)
            os.remove(first + '.index')
        return exists(path)
    monkeypatch.setattr(tf.train, 'checkpoint_exists', replace_and_look)
    assert checkpoint.latest(str(tmp_path)) == str(tmp_path / 'model.ckpt-2')


def test_a_checkpoint_is_replaced_while_read(tmp_path, monkeypatch):
    first = _save(tmp_path, 1)
    load = tf.train.load_checkpoint

    def replace_and_load(path):
        if path == first:
            _save(tmp_path, 2)
            os.remove(first + '.index')
        return load(path)
    monkeypatch.setattr(tf.train, 'load_checkpoint', replace_and_load)
    assert checkpoint.read_latest(str(tmp_path)).step == 2


def test_a_checkpoint_that_fits(tmp_path):
    saved = checkpoint.read(_save(tmp_path, 1))
    checkpoint.check_fits(saved, {'numbers': tf.get_variable('other', [3])})
    checkpoint.check_fits(saved, {})


@pytest.mark.parametrize('name, shape, dtype, complaint', [
    ('numbers', [2], tf.float32, r'its numbers is float32 \[3\], not float32 \[2\]'),
    ('numbers', [3], tf.float64, r'its numbers is float32 \[3\], not float64 \[3\]'),
    ('letters', [3], tf.float32, 'it has no letters')])
def test_a_checkpoint_that_does_not_fit(tmp_path, name, shape, dtype, complaint):
    path = _save(tmp_path, 1)
    message = '^The checkpoint %s does not fit: %s. Give the directory of a run of this network$' % (path, complaint)
    with pytest.raises(UserError, match=message):
        checkpoint.check_fits(checkpoint.read(path), {name: tf.get_variable('variable', shape, dtype)})
