"""Event files: what is written is there at once, and what cannot be written is told."""

import os
import resource

import pytest
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.runs.event_file import EventFile
from tests.helpers import events

COMPLAINT = r'^Cannot write summaries \([^;]+\): make room in %s, or give another directory$'


def _event(step):
    return tf.Event(
        step=step, summary=tf.Summary(value=[tf.Summary.Value(tag='loss', simple_value=step)])
    )


def test_events_are_written_immediately(tmp_path):
    with EventFile(str(tmp_path)) as opened:
        for step in (3, 5):
            opened.write(_event(step))
            assert events.scalars(tmp_path)[-1] == (step, 'loss', step)
    assert events.read(tmp_path)[0].file_version == 'brain.Event:2'
    assert all(event.wall_time > 1.5e9 for event in events.read(tmp_path))


def test_files_of_the_same_second(tmp_path, monkeypatch):
    monkeypatch.setattr('cifar10.runs.event_file.time.time', lambda: 1700000000.5)
    for step in (1, 2, 3):
        with EventFile(str(tmp_path)) as opened:
            opened.write(_event(step))
    assert sorted(name.split('.')[-1] for name in os.listdir(str(tmp_path))) == ['0', '1', '2']
    assert [step for step, _, _ in events.scalars(tmp_path)] == [1, 2, 3]


def test_a_link_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr('cifar10.runs.event_file.time.time', lambda: 1700000000.5)
    monkeypatch.setattr('cifar10.runs.event_file.socket.gethostname', lambda: 'host')
    (tmp_path / 'victim').write_text('old')
    (tmp_path / 'events.out.tfevents.1700000000.host.0').symlink_to(tmp_path / 'victim')
    with EventFile(str(tmp_path)) as opened:
        opened.write(_event(1))
    assert (tmp_path / 'victim').read_text() == 'old'


def test_a_directory_that_is_none(tmp_path):
    (tmp_path / 'file').write_text('')
    for name in ('file', 'missing'):
        with pytest.raises(UserError, match=COMPLAINT % (tmp_path / name)):
            EventFile(str(tmp_path / name))


def test_a_new_file_after_the_old_one_was_removed(tmp_path):
    with EventFile(str(tmp_path)) as opened:
        opened.write(_event(1))
        (name,) = os.listdir(str(tmp_path))
        (tmp_path / name).unlink()
        with pytest.raises(
            UserError, match=r'^Cannot write summaries \(No such file or directory\): '
        ):
            opened.write(_event(2))
        opened.write(_event(3))
        # The first event was on the disk, and is lost with it; the second one was not.
        assert events.scalars(tmp_path) == [(2, 'loss', 2), (3, 'loss', 3)]


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='this system has no full device')
def test_a_full_disk_at_the_start_and_for_a_while(tmp_path, monkeypatch):
    real = tf.io.TFRecordWriter
    with pytest.raises(UserError, match=COMPLAINT % tmp_path):
        monkeypatch.setattr(
            'cifar10.runs.event_file.tf.io.TFRecordWriter', lambda path: real('/dev/full')
        )
        EventFile(str(tmp_path))
    monkeypatch.setattr('cifar10.runs.event_file.tf.io.TFRecordWriter', real)
    with EventFile(str(tmp_path)) as opened:
        opened.write(_event(1))
        opened._writer = real('/dev/full')
        with pytest.raises(UserError, match=COMPLAINT % tmp_path):
            opened.write(_event(2))
        opened.write(_event(3))
    assert [step for step, _, _ in events.scalars(tmp_path)] == [1, 2, 3]


def test_nothing_half_written_stays(tmp_path):
    """A limit of the file's size stops the writer within an event, as a full disk does."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    with EventFile(str(tmp_path)) as opened:
        opened.write(_event(1))
        (path,) = tmp_path.iterdir()
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limit[1]))
        try:
            with pytest.raises(UserError, match=COMPLAINT % tmp_path):
                opened.write(_event(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert path.stat().st_size == size
        opened.write(_event(3))
    assert [step for step, _, _ in events.scalars(tmp_path)] == [1, 2, 3]
