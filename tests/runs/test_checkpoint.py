"""Search and reading of checkpoints, also while a trainer replaces them."""

import os
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, messages
from tests.helpers.small_run import train

DATA = '.data-00000-of-00001'


def _save(directory, step, global_step=True, name='model.ckpt'):
    """Save the numbers (1, 2, 3) and the step; return the path."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable('numbers', initializer=np.array([1, 2, 3], np.float32))
        if global_step:
            tf.get_variable('global_step', initializer=np.int64(step))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, os.path.join(str(directory), name), step)


def test_an_empty_or_missing_directory(tmp_path):
    for directory in (tmp_path, tmp_path / 'missing'):
        assert checkpoint.find(str(directory)) == []
        assert checkpoint.read_latest(str(directory)) is None
        assert checkpoint.newest_step(str(directory)) == 0


def test_the_highest_step_is_first(tmp_path):
    """Whatever the list says: it can name a deleted file, or lack the last checkpoint."""
    paths = [_save(tmp_path, step) for step in (9, 10)]
    (tmp_path / 'model.ckpt-11.data-00000-of-00001').touch()  # The process was killed.
    _save(tmp_path, 12, name='another.ckpt')
    for content in (b'model_checkpoint_path: "model.ckpt-9"\n', b'\xff\x00', None):
        (tmp_path / 'checkpoint').unlink()
        if content is not None:
            (tmp_path / 'checkpoint').write_bytes(content)
        found = checkpoint.find(str(tmp_path))
        assert [(saved.step, saved.path) for saved in found] == [(10, paths[1]), (9, paths[0])]
        assert [saved.time for saved in found] == [
            os.path.getmtime(path + '.index') for path in paths[::-1]
        ]
        latest = checkpoint.read_latest(str(tmp_path))
        assert (latest.path, latest.notes) == (paths[1], [])
        assert checkpoint.newest_step(str(tmp_path)) == 10


def test_what_a_checkpoint_holds(tmp_path):
    """The step is the global_step; without it, the number in the name, or 0."""
    path = _save(tmp_path, 7)
    saved = checkpoint.read_latest(str(tmp_path))
    assert (saved.path, saved.step, set(saved.values)) == (path, 7, {'numbers', 'global_step'})
    assert saved.values['numbers'].tolist() == [1, 2, 3]
    without = _save(tmp_path, 9, global_step=False, name='model-of-mine')
    assert checkpoint.read(without).step == 9
    for old, new, step in [(path, 'other-3', 7), (without, 'best', 0)]:
        for suffix in (DATA, '.index'):
            os.rename(old + suffix, str(tmp_path / new) + suffix)
        assert checkpoint.read(str(tmp_path / new)).step == step


def _flip_first_bit(path):
    with open(path, 'r+b') as content:
        byte = content.read(1)[0]
        content.seek(0)
        content.write(bytes([byte ^ 1]))


def _cut(path):
    os.truncate(path, 5)


@pytest.mark.parametrize(
    'suffix, damage',
    [(DATA, _flip_first_bit), (DATA, os.remove), ('.index', _cut), ('.index', _flip_first_bit)],
)
def test_a_damaged_checkpoint(tmp_path, suffix, damage):
    first, second = (_save(tmp_path, step) for step in (1, 2))
    damage(second + suffix)
    found = checkpoint.read_latest(str(tmp_path))
    (note,) = found.notes
    assert found.path == first
    assert re.fullmatch(rf'The checkpoint {second} is damaged \([^\n]+\). Using {first}', note)
    damage(first + suffix)
    with pytest.raises(
        UserError,
        match=rf'^The checkpoint {second} is damaged .*{first} is damaged [^\n]*no other intact',
    ):
        checkpoint.read_latest(str(tmp_path))


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


@pytest.mark.parametrize(
    'name, shape, dtype, complaint',
    [
        ('numbers', [2], tf.float32, r'its numbers is float32 \[3\], not float32 \[2\]'),
        ('numbers', [3], tf.float64, r'its numbers is float32 \[3\], not float64 \[3\]'),
        ('letters', [3], tf.float32, 'it has no letters'),
    ],
)
def test_a_checkpoint_that_does_not_fit(tmp_path, name, shape, dtype, complaint):
    path = _save(tmp_path, 1)
    remedy = 'give the --network of its run, or another --checkpoint or --checkpoint_dir'
    with messages.raises(f'^The checkpoint {path} does not fit: {complaint}: {remedy}$'):
        checkpoint.check_fits(
            checkpoint.read(path), {name: tf.get_variable('variable', shape, dtype)}
        )


def test_moving_averages_or_else_values(tmp_path):
    names = ['weights', 'weights/ExponentialMovingAverage', 'statistics']
    checkpoints.write(str(tmp_path / 'averages-1'), {name: np.zeros(2) for name in names})
    checkpoints.write(str(tmp_path / 'none-1'), {name: np.zeros(2) for name in names[::2]})
    averages, none = [checkpoint.read(str(tmp_path / name)) for name in ('averages-1', 'none-1')]
    wanted = {'weights': 1, 'statistics': 2}
    assert checkpoint.sources(averages, wanted) == {names[1]: 1, 'statistics': 2}
    assert checkpoint.sources(none, wanted) == wanted
    assert checkpoint.averages_notes(averages) == []
    assert checkpoint.averages_notes(none) == [
        f'{tmp_path}/none-1 has no moving averages: using the weights'
    ]


@pytest.mark.parametrize('value', [np.inf, np.nan])
def test_the_newest_one_is_not_finite(tmp_path, value):
    """An older one is used."""
    first, second = _save(tmp_path, 1), str(tmp_path / 'model.ckpt-2')
    values = dict(checkpoint.read(first).values, global_step=np.int64(2))
    values['numbers'] = np.array([1, value, 3], np.float32)
    checkpoints.write(second, values)
    tf.train.update_checkpoint_state(str(tmp_path), second, [first, second])
    found = checkpoint.read_latest(str(tmp_path))
    assert (found.path, found.notes) == (
        first,
        [f'The checkpoint {second} is damaged (its numbers is not finite). Using {first}'],
    )


def test_choices(tmp_path, data_dir):
    train(tmp_path, data_dir, 2, save_checkpoint_steps=1)
    for name, step in [
        ('', 2),
        ('checkpoint', 2),
        ('model.ckpt-1', 1),
        ('model.ckpt-1.meta', 1),
        ('model.ckpt-1' + DATA, 1),
    ]:
        assert checkpoint.read_choice(os.path.join(str(tmp_path), name)).step == step
    (tmp_path / 'empty').mkdir()
    remedy = 'give the directory of a run, or the path of another checkpoint$'
    for name, complaint in [
        ('model.ckpt-7', '^The checkpoint .*/model.ckpt-7 is missing: '),
        ('empty', '^There is no checkpoint in .*/empty: train first, or '),
    ]:
        with messages.raises(complaint + remedy):
            checkpoint.read_choice(str(tmp_path / name))
