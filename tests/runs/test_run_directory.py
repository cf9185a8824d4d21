"""Runs resumed, moved aside or refused; their record, also of an earlier version."""

import glob
import json
import math
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10.config import FAST
from cifar10.data import dataset
from cifar10.runs import run_directory
from cifar10.system import directories
from tests.helpers import messages
from tests.helpers.small_run import HPARAMS, assert_saved, job, train


def test_nothing_is_left_to_do(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 3)
    before = {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))}
    train(tmp_path, data_dir, 3)
    assert messages.nothing_to_do(3) in capsys.readouterr().out
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
    assert f'Moved the run in {tmp_path / "run"} to {aside}' in capsys.readouterr().out
    train(aside, data_dir, 4)  # The old run can be resumed in its new place.
    assert_saved(aside, 4)
    assert tf.train.latest_checkpoint(str(tmp_path / 'run')).endswith('run/model.ckpt-2')


def test_fresh_in_the_working_directory(tmp_path, data_dir, monkeypatch):
    train(tmp_path / 'run', data_dir, 3)
    monkeypatch.chdir(tmp_path / 'run')
    train('.', data_dir, 2, fresh=True)
    assert_saved(tmp_path / 'run', 2)


@pytest.mark.parametrize('fresh', [False, True])
def test_another_process_trains_in_the_directory(tmp_path, data_dir, fresh):
    train(tmp_path, data_dir, 1)
    with directories.Lock(str(tmp_path)), messages.raises(
        f'Another process is training in {tmp_path}'
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
    with messages.raises(
        'aside .No such file or directory., from .*/run to .*/run.nowhere/now: give another',
    ):
        train(tmp_path / 'run', data_dir, 1, fresh=True)
    assert_saved(tmp_path / 'run', 1)


def test_a_bad_checkpoint_is_not_overwritten(tmp_path, data_dir):
    train(tmp_path, data_dir, 2)
    os.truncate(str(tmp_path / 'model.ckpt-2.data-00000-of-00001'), 5)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with messages.raises('-2 is damaged.* There is no other intact checkpoint: put back a copy'):
        train(tmp_path, data_dir, 3)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_is_resumed_from_the_newest_intact_checkpoint(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 2, save_checkpoint_steps=1)
    (tmp_path / 'model.ckpt-2.index').unlink()
    train(tmp_path, data_dir, 4)
    output = capsys.readouterr().out
    assert f'{tmp_path}/model.ckpt-2 is missing. Using {tmp_path}/model.ckpt-1\n' in output
    assert messages.resuming(tmp_path, 1) in output
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


def test_a_checkpoint_of_another_network(tmp_path, data_dir):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 1)
    before = sorted(os.listdir(str(tmp_path)))
    with messages.raises('does not fit: its weights is missing'):
        train(tmp_path, data_dir, 3)
    assert sorted(os.listdir(str(tmp_path))) == before


def test_a_run_on_other_classes(tmp_path, data_dir, own_data_dir):
    train(tmp_path / 'run', data_dir, 1)
    with open(
        os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY, dataset.CLASS_NAMES_FILE), 'w'
    ) as names:
        names.write('\n'.join(dataset.CLASS_NAMES))
    complaint = (
        rf'The run in {tmp_path / "run"} was trained with class_names disc, ring, .*: give the same'
    )
    with messages.raises(complaint):
        train(tmp_path / 'run', own_data_dir, 2)
    assert_saved(tmp_path / 'run', 1)


@pytest.mark.parametrize(
    'hparams, difference',
    [
        (HPARAMS._replace(optimizer='momentum'), 'optimizer gradient_descent, not momentum'),
        (FAST, 'recipe classic, not fast'),
    ],
)
def test_another_optimizer_or_recipe(tmp_path, data_dir, hparams, difference):
    train(tmp_path, data_dir, 1)
    with messages.raises(
        f'The run in {tmp_path} was trained with {difference}: give the same, another',
    ):
        train(tmp_path, data_dir, 2, hparams=hparams)
    assert_saved(tmp_path, 1)


def test_other_hyperparameters_are_named(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    assert 'different' not in capsys.readouterr().out
    # An unused hyperparameter is not compared.
    train(tmp_path, data_dir, 1, hparams=HPARAMS._replace(matrix_weight_decay=7.0))
    assert 'different' not in capsys.readouterr().out
    train(tmp_path, data_dir, 2, hparams=HPARAMS._replace(batch_size=64, contrast=0.5))
    assert (
        f'The run in {tmp_path} is resumed with different hyperparameters: batch_size 64 (was 128), contrast 0.5 (was 0.8). The '
    ) in capsys.readouterr().out
    record = json.loads((tmp_path / 'run.json').read_text())
    assert (record['batch_size'], record['num_towers']) == (64, 2)


@pytest.mark.parametrize(
    'before, after, told',
    [
        ((1, False), (2, False), None),
        ((1, True), (2, True), 'seed 2 (was 1)'),
        ((1, True), (1, False), 'deterministic False (was True)'),
        ((1, False), (1, True), 'deterministic True (was False)'),
    ],
)
def test_what_the_seed_fixes(tmp_path, data_dir, capsys, before, after, told):
    train(tmp_path, data_dir, 1)
    for seed, deterministic in (before, after):
        capsys.readouterr()
        given = job(data_dir)._replace(seed=seed, deterministic=deterministic)
        with run_directory.lock(str(tmp_path), False, given) as run:
            run.write_record()
    printed = capsys.readouterr().out
    assert f'different hyperparameters: {told}. ' in printed if told else printed == ''


@pytest.mark.parametrize(
    'name, value, fault',
    [
        ('batch_size', '128', "batch_size is '128'"),
        ('batch_size', math.inf, ''),
        ('batch_size', 32.5, 'batch_size is 32.5'),
        ('schedule', 'step', "schedule is 'step'"),
        ('contrast', -1, 'contrast is -1'),
        ('class_names', [1, 2], 'class_names is not a list of names'),
        ('class_names', ['a\nb'], 'class_names is not a list of names'),
        ('class_names', 'cat', 'class_names is not a list of names'),
        ('best', {'checkpoint': '../x', 'precision': 0.5}, 'best is '),
        ('best', {'checkpoint': 'best.ckpt-1'}, 'best is '),
    ],
)
def test_a_bad_value_in_the_record(tmp_path, name, value, fault):
    path = tmp_path / 'run.json'
    path.write_text(json.dumps({name: value}))
    with messages.raises(rf'^{path} is damaged \({fault}.*\): delete it'):
        run_directory.read_hparams(str(tmp_path))


@pytest.mark.parametrize(
    'content, fault',
    [
        ('[]', 'not a JSON object'),
        ('{"num_towers": 1,}', ''),
        (f'{{"epochs": 1{"0" * 400}}}', ''),
    ],
)
def test_a_damaged_record(tmp_path, content, fault):
    path = tmp_path / 'run.json'
    path.write_text(content)
    with messages.raises(rf'^{path} is damaged \(.*{fault}.*\): delete it'):
        run_directory.read_hparams(str(tmp_path))


def test_a_record_of_an_earlier_version(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    record = json.loads((tmp_path / 'run.json').read_text())
    kept = ['initial_learning_rate', 'num_epochs_per_decay', 'moving_average_decay', 'num_towers']
    early = dict({name: record[name] for name in kept}, last_step=None)
    (tmp_path / 'run.json').write_text(json.dumps(early))
    assert run_directory.read_hparams(str(tmp_path)) == HPARAMS
    assert run_directory.read_record(str(tmp_path))['last_step'] == math.inf
    train(tmp_path, data_dir, 2)
    assert 'resumed with' not in capsys.readouterr().out


def test_the_record_is_strict_json(tmp_path, data_dir, capsys):
    """JSON has no infinity; resumed runs and the evaluation read the infinite epochs back."""

    def refuse(constant):
        raise AssertionError(constant)

    train(tmp_path, data_dir, 1)
    content = (tmp_path / 'run.json').read_text()
    assert json.loads(content, parse_constant=refuse)['epochs'] is None
    assert run_directory.read_hparams(str(tmp_path)) == HPARAMS and HPARAMS.epochs == math.inf
    train(tmp_path, data_dir, 2)
    assert 'resumed with' not in capsys.readouterr().out


def test_another_number_of_examples(tmp_path, data_dir, capsys):
    """Records of early versions have no checksum of the data."""
    train(tmp_path, data_dir, 2)
    path = tmp_path / 'run.json'
    record = dict(json.loads(path.read_text()), num_examples=200)
    del record['data_checksum']
    path.write_text(json.dumps(record))
    with messages.raises('was trained with num_examples 200, not 300: give the same'):
        train(tmp_path, data_dir, 3)
    train(tmp_path, data_dir, 3, hparams=HPARAMS._replace(learning_rate_decay_factor=1.0))
    assert 'num_examples 300 (was 200)' in capsys.readouterr().out


def test_other_images(tmp_path, data_dir, own_data_dir):
    """Equal files in another directory are the same data."""
    train(tmp_path / 'run', data_dir, 1)
    train(tmp_path / 'run', own_data_dir, 2)
    with open(dataset.read(own_data_dir).train.paths[2], 'r+b') as changed:
        changed.seek(-1, os.SEEK_END)
        (value,) = changed.read(1)
        changed.seek(-1, os.SEEK_END)
        changed.write(bytes([value ^ 1]))
    with messages.raises(f'^The run in {tmp_path}/run was trained on other training images: give '):
        train(tmp_path / 'run', own_data_dir, 3)
    assert_saved(tmp_path / 'run', 2)
