"""The progress bar, on a terminal and in a file."""

import io

import pytest

from cifar10.data import progress_bar


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets: clock[0] is the time."""
    now = [100.0]
    monkeypatch.setattr(progress_bar.time, 'monotonic', lambda: now[0])
    return now


def test_in_a_file_there_is_a_line_for_each_tenth(clock, capsys):
    bar = progress_bar.ProgressBar('Converting', 200)
    for _ in range(40):
        clock[0] += 1
        bar.advance(5)
    lines = capsys.readouterr().out.split('\n')
    assert lines[0] == 'Converting 10%: 20 of 200 images, 5 images/s, 0:00:36 left'
    assert lines[9] == 'Converting 100%: 200 of 200 images, 5 images/s, 0:00:00 left'
    assert len(lines) == 11 and '\r' not in ''.join(lines)


def test_on_a_terminal_the_line_changes(clock, monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, 'isatty', lambda: True, raising=False)
    bar = progress_bar.ProgressBar('Sending', 400, 'bytes', terminal)
    for _ in range(400):
        bar.advance(1)  # at once: no division by zero
    shown = terminal.getvalue().split('\r')
    assert len(shown) == 100 and shown[1].startswith('Sending 2%: 8 of 400 bytes, ')
    assert shown[-1].endswith('400 bytes, 400000 bytes/s, 0:00:00 left\n')
    assert '\n' not in ''.join(shown[:-1])
