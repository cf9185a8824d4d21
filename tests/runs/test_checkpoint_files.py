"""Saving of checkpoints; the best one: replaced by a better one, recorded, always intact."""

import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files, run_directory
from tests.helpers.small_run import job, train


def _checkpoint(step):
    return checkpoint.Checkpoint(
        'unused',
        step,
        {'conv1/weights': np.full([2, 3], step + 0.1, np.float32), 'global_step': np.int64(step)},
    )


def _held(train_dir, data_dir):
    return run_directory.lock(str(train_dir), False, job(data_dir))


def _best_files(train_dir):
    return sorted(name for name in os.listdir(str(train_dir)) if name.startswith('best'))


def _files_of(step):
    return [f'best.ckpt-{step}.data-00000-of-00001', f'best.ckpt-{step}.index']


def test_only_a_better_one_takes_its_place(tmp_path, data_dir, capsys):
    with _held(tmp_path, data_dir) as run:
        for step, precision, best in [(3, 0.5, 3), (4, 0.5, 3), (5, 0.4, 3), (6, 0.625, 6)]:
            checkpoint_files.keep_best(run, _checkpoint(step), precision)
            assert _best_files(tmp_path) == _files_of(best)
            saved = run_directory.read_checkpoint(str(tmp_path), 'best')
            assert (saved.path, saved.step) == (str(tmp_path / (f'best.ckpt-{best}')), best)
            np.testing.assert_array_equal(
                saved.values['conv1/weights'], np.full([2, 3], best + 0.1, np.float32)
            )
            assert saved.values['global_step'].dtype == np.int64 and len(saved.values) == 2
    assert json.loads((tmp_path / 'run.json').read_text())['best'] == {
        'checkpoint': 'best.ckpt-6',
        'precision': 0.625,
    }
    assert capsys.readouterr().out == ''.join(
        f'Best so far: precision @ 1 = {precision:.3f} on the test images, kept as {tmp_path / f"best.ckpt-{step}"}\n'
        for step, precision in [(3, 0.5), (6, 0.625)]
    )


def test_it_is_damaged_when_the_run_is_resumed(tmp_path, data_dir, capsys):
    """The next evaluation replaces it, even with a lower precision."""
    train(tmp_path, data_dir, 1)
    with _held(tmp_path, data_dir) as run:
        checkpoint_files.keep_best(run, _checkpoint(1), 0.5)
    os.truncate(str(tmp_path / 'best.ckpt-1.index'), 5)
    with _held(tmp_path, data_dir) as run:  # Without --keep_best it is not read.
        assert run.record['best'] and 'is damaged' not in capsys.readouterr().out
    given = job(data_dir)
    with run_directory.lock(
        str(tmp_path), False, given._replace(intervals=given.intervals._replace(keep_best=True))
    ) as run:
        (told,) = [line for line in capsys.readouterr().out.splitlines() if 'best.ckpt-1' in line]
        assert 'is damaged' in told and 'The next evaluation replaces it' in told
        checkpoint_files.keep_best(run, _checkpoint(2), 0.25)
    assert _best_files(tmp_path) == _files_of(2)
    assert run_directory.read_record(str(tmp_path)).get('best') == {
        'checkpoint': 'best.ckpt-2',
        'precision': 0.25,
    }


@pytest.mark.parametrize('step', [3, 4])
def test_full_disk(step, tmp_path, data_dir, monkeypatch):
    """The best checkpoint is kept, even of a repeated step; unfinished files are removed."""

    def fail(*unused):
        (tmp_path / 'best.ckpt-4.data-00000-of-00001.tempstate123').write_bytes(b'half')
        raise OSError(28, 'No space left on device')

    with _held(tmp_path, data_dir) as run:
        checkpoint_files.keep_best(run, _checkpoint(3), 0.5)
        with monkeypatch.context() as patched:
            patched.setattr(run_directory.RunDirectory, 'write_record', fail)
            with pytest.raises(
                UserError,
                match=f'best checkpoint .No space left on device.: make room for .*/best.ckpt-{step}$',
            ):
                checkpoint_files.keep_best(run, _checkpoint(step), 0.75)
        assert _best_files(tmp_path) == _files_of(3)
        assert run_directory.read_checkpoint(str(tmp_path), 'best').step == 3
        checkpoint_files.keep_best(run, _checkpoint(5), 0.625)
    assert _best_files(tmp_path) == _files_of(5)


def test_choices(tmp_path, data_dir):
    train(tmp_path, data_dir, 2, save_checkpoint_steps=1)
    for choice, step in [('latest', 2)] + [
        (str(tmp_path / 'model.ckpt-1') + suffix, 1)
        for suffix in ('', '.meta', '.data-00000-of-00001')
    ]:
        assert run_directory.read_checkpoint(str(tmp_path), choice).step == step
    for choice, complaint in [
        ('best', 'has kept no best checkpoint: train with --keep_best'),
        (
            str(tmp_path / 'model.ckpt-7'),
            'The checkpoint .*model.ckpt-7 is missing. Give --checkpoint=latest, or the path',
        ),
        (str(tmp_path), 'for a directory, use --checkpoint_dir$'),
    ]:
        with pytest.raises(UserError, match=complaint):
            run_directory.read_checkpoint(str(tmp_path), choice)
    with pytest.raises(UserError, match='There is no checkpoint in .*none: train first'):
        run_directory.read_checkpoint(str(tmp_path / 'none'), 'latest')


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


def test_the_record_names_no_checkpoint_that_is_being_written(tmp_path, data_dir, monkeypatch):
    """A resumed run repeats the step of the best checkpoint."""
    with _held(tmp_path, data_dir) as run:
        checkpoint_files.keep_best(run, _checkpoint(3), 0.5)
        named = []
        monkeypatch.setattr(
            checkpoint_files,
            '_write',
            lambda *unused: named.append(run_directory.read_record(str(tmp_path))['best']),
        )
        checkpoint_files.keep_best(run, _checkpoint(3), 0.6)
    assert named == [None]
