"""Runs that are resumed, moved aside, refused."""

import glob
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import directories
from cifar10.errors import UserError
from cifar10.runs import run_directory
from tests.helpers.small_run import assert_saved, train


def test_nothing_is_left_to_do(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 3)
    before = {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))}
    train(tmp_path, data_dir, 3)
    assert 'Nothing to do: the run ends at step 3' in capsys.readouterr().out
    assert {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))} == before


def test_max_to_keep_counts_over_starts(tmp_path, data_dir):
    for steps in range(1, 5):
        train(tmp_path, data_dir, steps, max_to_keep=2)
    assert sorted(os.path.basename(path) for path in glob.glob(str(tmp_path / '*.index'))) == [
        'model.ckpt-3.index',
        'model.ckpt-4.index',
    ]


def test_fresh_moves_the_old_run_aside(tmp_path, data_dir, capsys):
    train(tmp_path / 'run', data_dir, 3)
    train(str(tmp_path / 'run') + '/', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)
    (aside,) = glob.glob(str(tmp_path / 'run.*'))
    assert 'Moved the run in %s to %s' % (tmp_path / 'run', aside) in capsys.readouterr().out
    train(aside, data_dir, 4)  # the old run can be resumed where it is now
    assert_saved(aside, 4)
    assert tf.train.latest_checkpoint(str(tmp_path / 'run')).endswith('run/model.ckpt-2')


def test_fresh_in_the_working_directory(tmp_path, data_dir, monkeypatch):
    train(tmp_path / 'run', data_dir, 3)
    monkeypatch.chdir(tmp_path / 'run')
    train('.', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)


def test_fresh_does_not_move_the_data(tmp_path, own_data_dir):
    train(tmp_path, own_data_dir, 1)
    with pytest.raises(UserError, match='--fresh would move the data in %s' % own_data_dir):
        train(tmp_path, own_data_dir, 1, fresh=True)
    assert_saved(tmp_path, 1)


@pytest.mark.parametrize('fresh', [False, True])
def test_another_process_trains_in_the_directory(tmp_path, data_dir, fresh):
    train(tmp_path, data_dir, 1)
    with directories.locked(str(tmp_path)), pytest.raises(
        UserError, match='Another process is training in %s' % tmp_path
    ):
        train(tmp_path, data_dir, 2, fresh=fresh)
    assert_saved(tmp_path, 1)


def test_fresh_in_a_directory_without_a_run(tmp_path, data_dir):
    (tmp_path / 'letters.txt').write_text('dear')
    train(tmp_path, data_dir, 1, fresh=True)
    assert (tmp_path / 'letters.txt').exists()


def test_a_run_that_cannot_be_moved(tmp_path, data_dir, monkeypatch):
    monkeypatch.setattr(run_directory.time, 'strftime', lambda form: 'nowhere/now')
    train(tmp_path / 'run', data_dir, 1)
    with pytest.raises(
        UserError,
        match='aside .No such file or directory., from .*/run to .*/run.nowhere/now: give another',
    ):
        train(tmp_path / 'run', data_dir, 1, fresh=True)
    assert_saved(tmp_path / 'run', 1)


def _remove(path):
    path.unlink()


def _empty(path):
    path.write_bytes(b'')


def _cut(path):
    os.truncate(str(path), 5)


def _change(path):
    content = bytearray(path.read_bytes())
    content[0] ^= 255
    path.write_bytes(content)


_DAMAGES = [
    (_remove, 'model.ckpt-2.index', 'model.ckpt-2 is missing'),
    (_change, 'model.ckpt-2.data-00000-of-00001', 'model.ckpt-2 is damaged'),
    (_cut, 'model.ckpt-2.data-00000-of-00001', 'model.ckpt-2 is damaged'),
]


@pytest.mark.parametrize('damage, name, complaint', _DAMAGES)
def test_a_bad_checkpoint_is_not_overwritten(tmp_path, data_dir, damage, name, complaint):
    train(tmp_path, data_dir, 2)
    damage(tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(
        UserError, match=complaint + '.* There is no other intact checkpoint: put back a copy'
    ) as error:
        train(tmp_path, data_dir, 3)
    assert '\n' not in str(error.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize('damage, name, complaint', _DAMAGES)
def test_a_run_is_resumed_from_the_newest_intact_checkpoint(
    tmp_path, data_dir, capsys, damage, name, complaint
):
    train(tmp_path, data_dir, 2, checkpoint_steps=1)
    damage(tmp_path / name)
    train(tmp_path, data_dir, 4)
    output = capsys.readouterr().out
    assert (
        '%s/%s' % (tmp_path, complaint) in output
        and '. Using %s/model.ckpt-1\n' % tmp_path in output
    )
    assert 'Resuming from %s/model.ckpt-1, step 1\n' % tmp_path in output
    assert_saved(tmp_path, 4)


@pytest.mark.parametrize('damage', [_remove, _empty])
def test_a_run_is_resumed_without_the_list(tmp_path, data_dir, capsys, damage):
    train(tmp_path, data_dir, 2, checkpoint_steps=1)
    damage(tmp_path / 'checkpoint')
    train(tmp_path, data_dir, 4)
    assert (
        '{0}/checkpoint is missing or damaged. Using {0}/model.ckpt-2\n'.format(tmp_path)
        in capsys.readouterr().out
    )
    assert_saved(tmp_path, 4)


def test_leftovers_are_cleared(tmp_path, data_dir):
    train(tmp_path, data_dir, 1)
    token = '0123456789abcdef' * 2
    leftovers = [
        'model.ckpt-7.data-00000-of-00001.tempstate123',
        'model.ckpt-7.index.tempstate9',
        'checkpoint.tmp' + token,
        'model.ckpt-1.meta.tmp' + token,
        'run.json.new',
        'run.json.new.12',
        'model.ckpt-9.data-00000-of-00001',
    ]
    others = ['notes.tempstate1', 'run.json.new.bak', 'model.ckpt-7.backup', 'checkpoint.tmp']
    for name in leftovers + others:
        (tmp_path / name).write_text('x')
    train(tmp_path, data_dir, 2)
    assert not set(leftovers) & set(os.listdir(str(tmp_path)))
    assert set(others) <= set(os.listdir(str(tmp_path)))


@pytest.mark.parametrize('name', ['run[12]', 'run*', 'run?', 'a\\b'])
def test_names_that_are_patterns(tmp_path, data_dir, name):
    train(tmp_path / 'run1', data_dir, 1)
    with pytest.raises(
        UserError,
        match=r'which TensorFlow reads as a pattern: rename it, or give another directory$',
    ):
        train(tmp_path / name, data_dir, 1)
    assert os.listdir(str(tmp_path)) == ['run1']


def test_a_checkpoint_of_another_network(tmp_path, data_dir):
    for shape, dtype, complaint in [
        ([3], tf.float32, r'its weights is float32 \[3\], not float32 \[2\]'),
        ([2], tf.float64, r'its weights is float64 \[2\]'),
        (None, None, 'its weights is missing'),
    ]:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.train.get_or_create_global_step()
            if shape:
                tf.get_variable('weights', shape, dtype)
                tf.get_variable('weights/ExponentialMovingAverage', [2])
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 1)
        before = sorted(os.listdir(str(tmp_path)))
        with pytest.raises(UserError, match='does not fit: ' + complaint):
            train(tmp_path, data_dir, 3)
        assert sorted(os.listdir(str(tmp_path))) == before
