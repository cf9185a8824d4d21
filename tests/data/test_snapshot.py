"""Data files that change under a run."""

import os
import shutil

import pytest

from cifar10.data import dataset
from cifar10.data.verification import Snapshot
from cifar10.errors import UserError
from tests.helpers import data_sets, faults, special_files
from tests.helpers.special_files import deadline  # noqa: F401


@pytest.fixture
def paths(own_data_dir):
    return dataset.read(own_data_dir).train.paths


def _replace(path, content):
    """Another file under the same name."""
    with open(path + '.other', 'wb') as other:
        other.write(content)
    os.replace(path + '.other', path)


def _content(path):
    with open(path, 'rb') as opened:
        return opened.read()


def test_nothing_has_changed(paths, tmp_path):
    snapshot = Snapshot(data_sets.records(paths))
    assert snapshot.changed() is None
    _content(paths[0])
    shutil.copy2(paths[1], str(tmp_path / 'copy'))  # with its time
    os.replace(str(tmp_path / 'copy'), paths[1])
    os.chmod(paths[2], 0o600)
    os.link(paths[3], str(tmp_path / 'backup'))
    assert snapshot.changed() is None


@pytest.mark.parametrize(
    'change, line',
    [
        (os.remove, '{path} has been removed'),
        (
            lambda path: os.rename(os.path.dirname(path), os.path.dirname(path) + '-moved'),
            '{first} has been removed',
        ),
        (lambda path: os.truncate(path, 0), '{path} has changed: it had 184380 bytes, now 0'),
        (lambda path: os.truncate(path, 3073), '{path} has changed: it had 184380 bytes, now 3073'),
        (
            lambda path: _replace(path, bytes(184381)),
            '{path} has changed: it had 184380 bytes, now 184381',
        ),
        (lambda path: faults.relabel(path, 3), '{path} has changed since the start'),
        (lambda path: os.utime(path, ns=(1, 1)), '{path} has changed since the start'),
        (
            lambda path: os.utime(path, ns=(1, os.stat(path).st_mtime_ns + 1)),
            '{path} has changed since the start',
        ),
    ],
)
def test_the_first_change_is_named(paths, change, line):
    snapshot = Snapshot(data_sets.records(paths))
    os.utime(paths[4], ns=(1, 1))  # not the first one
    change(paths[3])
    assert snapshot.changed() == line.format(path=paths[3], first=paths[0])


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_something_else_in_its_place(paths, kind):
    """It must not be opened: a FIFO would wait for ever."""
    snapshot = Snapshot(data_sets.records(paths))
    os.remove(paths[3])
    special_files.make(paths[3], kind)
    assert snapshot.changed() == '%s is now %s' % (paths[3], kind)
    os.remove(paths[2])
    os.symlink(paths[3], paths[2])
    assert snapshot.changed() == '%s is now %s' % (paths[2], kind)


def test_a_loop_of_links(paths):
    snapshot = Snapshot(data_sets.records(paths))
    os.remove(paths[3])
    os.symlink(paths[3], paths[3])
    assert (
        snapshot.changed()
        == '%s cannot be read any more (Too many levels of symbolic links)' % paths[3]
    )


def test_links_to_files(paths, tmp_path):
    links = [str(tmp_path / os.path.basename(path)) for path in paths]
    for path, link in zip(paths, links):
        os.symlink(path, link)
    snapshot = Snapshot(data_sets.records(links))
    assert snapshot.changed() is None
    os.truncate(paths[0], 1)
    assert snapshot.changed() == '%s has changed: it had 184380 bytes, now 1' % links[0]


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_no_file_at_the_start(paths, kind):
    os.remove(paths[3])
    with pytest.raises(UserError, match='^%s is missing: ' % paths[3]):
        Snapshot(data_sets.records(paths))
    special_files.make(paths[3], kind)
    with pytest.raises(
        UserError, match='^%s is %s, not a file: replace it with a good copy$' % (paths[3], kind)
    ):
        Snapshot(data_sets.records(paths))
