"""Runs that are gone on with, moved aside, refused."""
import glob
import json
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import files as directory
from cifar10.data import dataset
from cifar10.runs import run_directory
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC
from tests.helpers.small_run import HPARAMS, assert_saved, train


def test_nothing_is_done_when_all_steps_are_there(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 3)
    before = {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))}
    train(tmp_path, data_dir, 3)
    assert 'Nothing to do: the run ends at step 3' in capsys.readouterr().out
    assert {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))} == before


def test_max_to_keep_counts_over_starts(tmp_path, data_dir):
    for steps in range(1, 9):
        train(tmp_path, data_dir, steps)
    assert len(glob.glob(str(tmp_path / '*.index'))) == 5


def test_fresh_moves_the_old_run_aside(tmp_path, data_dir, capsys):
    train(tmp_path / 'run', data_dir, 3)
    train(str(tmp_path / 'run') + '/', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)
    aside, = glob.glob(str(tmp_path / 'run.*'))
    assert 'Moved the run in %s to %s' % (tmp_path / 'run', aside) in capsys.readouterr().out
    train(aside, data_dir, 4)  # what was moved goes on by itself
    assert_saved(aside, 4)
    assert tf.train.latest_checkpoint(str(tmp_path / 'run')).endswith('run/model.ckpt-2')


def test_fresh_in_the_working_directory(tmp_path, data_dir, monkeypatch):
    train(tmp_path / 'run', data_dir, 3)
    monkeypatch.chdir(tmp_path / 'run')
    train('.', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)


def test_a_moved_directory_is_not_locked_in_its_new_place(tmp_path, monkeypatch):
    (tmp_path / 'run').mkdir()
    flock = directory.fcntl.flock

    def move_and_lock(handle, operation):
        (tmp_path / 'run').rename(tmp_path / 'aside')
        (tmp_path / 'run').mkdir()
        return flock(handle, operation)
    monkeypatch.setattr(directory.fcntl, 'flock', move_and_lock)
    with pytest.raises(UserError, match='has just been moved'):
        with directory.locked(str(tmp_path / 'run')):
            pass


def test_fresh_does_not_move_the_data(tmp_path, own_data_dir):
    train(tmp_path, own_data_dir, 1)
    with pytest.raises(UserError, match='--fresh would move the data in %s' % own_data_dir):
        train(tmp_path, own_data_dir, 1, fresh=True)
    assert_saved(tmp_path, 1)


@pytest.mark.parametrize('fresh', [False, True])
def test_a_directory_in_which_another_process_trains_is_left_alone(tmp_path, data_dir, fresh):
    train(tmp_path, data_dir, 1)
    with directory.locked(str(tmp_path)), pytest.raises(UserError, match='Another process is training in %s' % tmp_path):
        train(tmp_path, data_dir, 2, fresh=fresh)
    assert_saved(tmp_path, 1)


def test_fresh_leaves_a_directory_without_a_run_alone(tmp_path, data_dir):
    (tmp_path / 'letters.txt').write_text('dear')
    train(tmp_path, data_dir, 1, fresh=True)
    assert (tmp_path / 'letters.txt').exists()


def test_a_run_on_other_data_is_not_gone_on_with(tmp_path, data_dir, own_data_dir):
    train(tmp_path / 'run', data_dir, 1)
    with open(os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE), 'w') as names:
        names.write('\n'.join(dataset.CLASS_NAMES))
    with pytest.raises(UserError, match='is on a data set with other classes .disc, ring'):
        train(tmp_path / 'run', own_data_dir, 2)
    assert_saved(tmp_path / 'run', 1)


def test_a_run_does_not_go_on_with_another_optimizer(tmp_path, data_dir):
    train(tmp_path, data_dir, 1)
    with pytest.raises(UserError, match='The run in %s is of --optimizer=gradient_descent, not momentum: give that, ' % tmp_path):
        train(tmp_path, data_dir, 2, hparams=HPARAMS._replace(optimizer='momentum'))
    assert_saved(tmp_path, 1)


def test_a_run_with_another_batch_says_so(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    capsys.readouterr()
    train(tmp_path, data_dir, 2, hparams=HPARAMS._replace(batch_size=64))
    assert 'batch_size was 128, is 64. Its steps so far count' in capsys.readouterr().out
    record = json.load(open(str(tmp_path / 'run.json')))
    assert (record['batch_size'], record['num_towers'], record['class_names'][0]) == (64, 2, 'disc')


def test_a_number_without_effect_may_change(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    capsys.readouterr()
    train(tmp_path, data_dir, 2, hparams=HPARAMS._replace(matrix_weight_decay=7.0))
    assert 'other numbers' not in capsys.readouterr().out


@pytest.mark.parametrize('content', ['', '[]', '{}', '{"class_names": [1, 2]}', '{"batch_size": Infinity}'])
def test_a_damaged_record_is_named(tmp_path, data_dir, content):
    train(tmp_path, data_dir, 1)
    (tmp_path / 'run.json').write_text(content)
    with pytest.raises(UserError, match='%s is damaged' % (tmp_path / 'run.json')):
        train(tmp_path, data_dir, 2)


def test_a_record_of_an_earlier_version_lacks_what_was_classic_then(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    record = json.loads((tmp_path / 'run.json').read_text())
    kept = ['batch_size', 'initial_learning_rate', 'num_epochs_per_decay', 'learning_rate_decay_factor', 'moving_average_decay',
            'num_towers', 'class_names']
    (tmp_path / 'run.json').write_text(json.dumps({name: record[name] for name in kept}))
    assert run_directory.recorded_hparams(str(tmp_path)) == HPARAMS
    capsys.readouterr()
    train(tmp_path, data_dir, 2)
    assert 'other numbers' not in capsys.readouterr().out


def test_no_record_counts_as_classic(tmp_path):
    assert run_directory.recorded_hparams(str(tmp_path)) == CLASSIC


def _damage_index(train_dir):
    os.remove(os.path.join(train_dir, 'model.ckpt-2.index'))


def _damage_data(train_dir):
    path = os.path.join(train_dir, 'model.ckpt-2.data-00000-of-00001')
    content = bytearray(open(path, 'rb').read())
    content[0] ^= 255
    open(path, 'wb').write(content)


def _cut_data(train_dir):
    os.truncate(os.path.join(train_dir, 'model.ckpt-2.data-00000-of-00001'), 5)


def _remove_state(train_dir):
    os.remove(os.path.join(train_dir, 'checkpoint'))


def _empty_state(train_dir):
    open(os.path.join(train_dir, 'checkpoint'), 'w').close()


@pytest.mark.parametrize('damage, complaint', [
    (_damage_index, 'model.ckpt-2 is missing, though'), (_damage_data, 'model.ckpt-2 is damaged'),
    (_cut_data, 'model.ckpt-2 is damaged'), (_remove_state, 'holds checkpoints, but not the file "checkpoint"'),
    (_empty_state, 'checkpoint is damaged: it must name')])
def test_a_bad_checkpoint_is_named_and_nothing_is_overwritten(tmp_path, data_dir, damage, complaint):
    train(tmp_path, data_dir, 2)
    damage(str(tmp_path))
    before = {path: open(path, 'rb').read() for path in glob.glob(str(tmp_path / '*'))}
    with pytest.raises(UserError, match=complaint) as error:
        train(tmp_path, data_dir, 3)
    assert '\n' not in str(error.value)
    assert {path: open(path, 'rb').read() for path in glob.glob(str(tmp_path / '*'))} == before


def test_a_checkpoint_of_another_network_is_refused(tmp_path, data_dir):
    for shape, dtype, complaint in [([3], tf.float32, r'its weights is float32 \[3\], not float32 \[2\]'),
                                    ([2], tf.float64, r'its weights is float64 \[2\]'), (None, None, 'it has no weights')]:
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
