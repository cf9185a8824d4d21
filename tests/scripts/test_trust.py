"""Files planted by other users at the paths that scripts write."""

import os
import stat

import pytest

from cifar10.data import synthetic
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, faults, programs
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
def foreign(tmp_path):
    """Another user's directory in a world-writable one."""
    shared = tmp_path / 'shared'
    shared.mkdir()
    shared.chmod(0o1777)
    directory = shared / 'foreign'
    directory.mkdir()
    os.chown(str(directory), STRANGER, STRANGER)
    return directory


@needs_root
def test_a_directory_of_another_user(tmp_path, data_dir, foreign):
    checkpoints.save(tmp_path, 1)
    directory = str(foreign / 'inner')
    for script, args in [
        ('cifar10_train', faults.job(data_dir, directory, '--max_steps=1')),
        ('cifar10_multi_gpu_train', faults.job(data_dir, directory, '--max_steps=1')),
        ('cifar10_classic', faults.classic_job(data_dir, directory, '--max_steps=1')),
        ('cifar10_eval', faults.evaluation(data_dir, tmp_path, directory, '--run_once')),
        ('cifar10_dataset', ['download', '--data_dir=' + directory, '--data_url=file:///nowhere']),
    ]:
        status, _, stderr = programs.call(script, *args)
        faults.assert_one_line(stderr, foreign)
        assert status == 1 and os.listdir(str(foreign)) == [], script


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
