"""Event files: immediate writing, errors."""

import os
import resource

import tensorflow.compat.v1 as tf

from cifar10.runs.event_file import SummaryWriter
from tests.helpers import events, messages

COMPLAINT = r'^Cannot write summaries \(.+\): make room in %s, or give another directory$'


def _add(summary_writer, step):
    value = tf.Summary.Value(tag='loss', simple_value=step)
    summary_writer.add_summary(tf.Summary(value=[value]), step)


def test_events_are_written_immediately(tmp_path):
    with SummaryWriter(str(tmp_path)) as summary_writer:
        for step in (3, 5):
            _add(summary_writer, step)
            assert events.scalars(tmp_path)[-1] == (step, 'loss', step)
    assert events.read(tmp_path)[0].file_version == 'brain.Event:2'
    assert all(event.wall_time > 1.5e9 for event in events.read(tmp_path))


def test_files_of_the_same_second(tmp_path, monkeypatch):
    monkeypatch.setattr('cifar10.runs.event_file.time.time', lambda: 1700000000.5)
    monkeypatch.setattr('cifar10.runs.event_file.socket.gethostname', lambda: 'host')
    for step in (1, 2):
        with SummaryWriter(str(tmp_path)) as summary_writer:
            _add(summary_writer, step)
    assert sorted(name[-6:] for name in os.listdir(str(tmp_path))) == ['host.0', 'host.1']
    assert [step for step, _, _ in events.scalars(tmp_path)] == [1, 2]


def test_a_new_file_after_the_old_one_was_removed(tmp_path):
    with SummaryWriter(str(tmp_path)) as summary_writer:
        _add(summary_writer, 1)
        (name,) = os.listdir(str(tmp_path))
        (tmp_path / name).unlink()
        with messages.raises(r'^Cannot write summaries \(No such file or directory\): '):
            _add(summary_writer, 2)
        _add(summary_writer, 3)
        # The first event was in the removed file; the second one was pending.
        assert events.scalars(tmp_path) == [(2, 'loss', 2), (3, 'loss', 3)]


def test_errors_for_a_long_time(tmp_path):
    """The memory is bounded: the newest events are kept."""
    (tmp_path / 'file').write_text('')
    directory = tmp_path / 'file' / 'run'
    summary_writer = SummaryWriter(str(directory))
    for step in range(1, 251):
        with messages.raises(COMPLAINT % directory):
            _add(summary_writer, step)
    (tmp_path / 'file').unlink()
    directory.mkdir(parents=True)
    with summary_writer:
        _add(summary_writer, 251)
    assert [step for step, _, _ in events.scalars(directory)] == list(range(152, 252))


def test_a_full_disk(tmp_path):
    """A limit on file sizes stops the writer within an event; no incomplete event remains."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5, limit[1]))
        with messages.raises(COMPLAINT % tmp_path):
            _add(SummaryWriter(str(tmp_path)), 1)
        assert list(tmp_path.iterdir()) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        with SummaryWriter(str(tmp_path)) as summary_writer:
            _add(summary_writer, 1)
            (path,) = tmp_path.iterdir()
            size = path.stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limit[1]))
            with messages.raises(COMPLAINT % tmp_path):
                _add(summary_writer, 2)
            assert path.stat().st_size == size
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            _add(summary_writer, 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [step for step, _, _ in events.scalars(tmp_path)] == [1, 2, 3]
