"""Files planted by other users at the paths that scripts write."""

import os
import shutil
import stat

import pytest

import cifar10
from cifar10.cli import data_flags
from cifar10.data import dataset, synthetic
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, data_sets, faults, messages, programs
from tests.helpers.special_files import needs_root

pytestmark = pytest.mark.slow

STRANGER = 12345  # the id of no user


@pytest.fixture
def victim(tmp_path):
    """A file that no script may write to."""
    path = tmp_path / 'victim'
    path.write_text('precious')
    yield path
    assert path.read_text() == 'precious'


def test_the_record_does_not_follow_a_link(tmp_path, data_dir, victim):
    links = [tmp_path / name for name in ('run.json.new', 'run.json.new.0', 'run.json')]
    for link in links:
        link.symlink_to(victim)
    programs.call('cifar10_train', *faults.job(data_dir, tmp_path, '--max_steps=1'))
    assert victim.read_text() == 'precious' and not any(map(os.path.islink, map(str, links)))


def test_the_list_of_checkpoints_does_not_follow_a_link(tmp_path, data_dir, victim):
    os.symlink(str(victim), str(tmp_path / 'checkpoint'))
    programs.call('cifar10_train', *faults.job(data_dir, tmp_path, '--max_steps=1'))


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """Directories of another user in place of the defaults below /tmp."""
    shared = tmp_path / 'shared'
    shared.mkdir()
    define = data_flags.define_directory

    def define_elsewhere(name, default, *args, **kwargs):
        define(name, default and default.replace('/tmp', str(shared), 1), *args, **kwargs)

    monkeypatch.setattr(data_flags, 'define_directory', define_elsewhere)
    monkeypatch.setattr(synthetic, 'DATA_DIR', f'{shared}/cifar10_synthetic')
    for name in ('train', 'eval', 'export', 'data', 'synthetic'):
        (shared / f'cifar10_{name}').mkdir()
        os.chown(str(shared / f'cifar10_{name}'), STRANGER, STRANGER)
    return shared


@needs_root
@pytest.mark.parametrize('is_named', [False, True])
def test_a_directory_of_another_user(tmp_path, data_dir, foreign, monkeypatch, is_named):
    """It is refused as a default, and used if the user names it."""
    monkeypatch.setattr(
        synthetic, 'draw_records', lambda count, rng, draw=synthetic.draw_records: draw(10, rng)
    )
    checkpoints.save(tmp_path, 1)
    training = ['--dataset=synthetic', f'--data_dir={data_dir}', '--batch_size=4', '--max_steps=1']
    copy = f'--checkpoint_dir={tmp_path}'
    for script, flag, args in [
        ('cifar10_train', 'train_dir', training + ['--eval_every=0']),
        ('cifar10_classic', 'train_dir', training),
        (
            'cifar10_eval',
            'eval_dir',
            ['--dataset=synthetic', f'--data_dir={data_dir}', copy, '--run_once'],
        ),
        ('cifar10_export', 'export_dir', [copy]),
        ('cifar10_dataset', 'data_dir', ['synthetic']),
    ]:
        name = 'synthetic' if flag == 'data_dir' else flag[: -len('_dir')]
        directory = foreign / f'cifar10_{name}'
        named = [f'--{flag}={directory}'] if is_named else []
        status, _, stderr = programs.call(script, *args, *named)
        assert (status, bool(os.listdir(str(directory)))) == (1 - is_named, is_named), stderr
        if is_named:
            shutil.rmtree(str(directory))
            directory.mkdir()
        else:
            faults.assert_one_line(
                stderr,
                f'{directory} belongs to another user, in ',
                f', or --{flag}={directory} if ',
            )


@needs_root
def test_the_default_directory_of_a_program(tmp_path, foreign, monkeypatch):
    """The books' programs give no data_dir. A data set of another user is read."""
    default = foreign / 'cifar10_data'
    monkeypatch.setattr(dataset, 'DATA_DIR', str(default))
    with messages.raises(f'^{default} belongs to another user, in .*: give another directory$'):
        cifar10.maybe_download_and_extract(str(default), 'file:///nowhere')
    assert os.listdir(str(default)) == []
    data_sets.write(default)
    cifar10.maybe_download_and_extract(str(default), 'file:///nowhere')


@pytest.fixture
def lax_umask():
    """New files are world-writable."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_nobody_else_can_write_to_what_is_made(tmp_path, data_dir, lax_umask, monkeypatch):
    monkeypatch.setattr(
        synthetic, 'draw_records', lambda count, rng, draw=synthetic.draw_records: draw(10, rng)
    )
    top = tmp_path / 'made'
    os.umask(0o022)
    top.mkdir()
    os.umask(0)
    calls = [
        ('cifar10_train', faults.job(data_dir, top / 'run', '--max_steps=1')),
        (
            'cifar10_eval',
            faults.evaluation(
                data_dir, top / 'run', top / 'eval', '--run_once', '--num_examples=1'
            ),
        ),
        ('cifar10_classic', faults.classic_job(data_dir, top / 'classic', '--max_steps=1')),
        ('cifar10_dataset', ['synthetic', f'--data_dir={top / "data"}']),
    ]
    for script, args in calls:
        status, _, stderr = programs.call(script, *args)
        assert (status, stderr) == (0, '')
    assert checkpoint.read_latest(str(top / 'run')).step == 1
    made = [path for path in faults.snapshot(top) if not os.path.islink(path)]
    assert len(made) > 20
    assert [path for path in made if os.stat(path).st_mode & stat.S_IWOTH] == []
