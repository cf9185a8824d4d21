"""The progress bar, on a terminal and in a file."""

import io
import re
import sys

import pytest

from cifar10.data import progress_bar


class _Terminal(io.StringIO):
    def isatty(self):
        return True


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
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'Converting 10%: 20 of 200 images, 5 images/s, 0:00:36 left'
    assert lines[4] == 'Converting 50%: 100 of 200 images, 5 images/s, 0:00:20 left'
    assert (
        lines[9] == 'Converting 100%: 200 of 200 images, 5 images/s, 0:00:00 left'
        and len(lines) == 10
    )


def test_on_a_terminal_the_line_changes(clock, monkeypatch):
    monkeypatch.setattr(sys, 'stdout', _Terminal())
    bar = progress_bar.ProgressBar('Converting', 1000)
    for _ in range(100):
        clock[0] += 0.05
        bar.advance(10)
    shown = sys.stdout.getvalue().split('\r')[1:]
    assert 20 < len(shown) < 30  # every 0.2 s
    assert shown[
        -1
    ] == 'Converting [%s] 100%%: 1000 of 1000 images, 200 images/s, 0:00:00 left\n' % ('#' * 30)
    assert all('\n' not in line for line in shown[:-1])
    bars = {
        int(done): marks for marks, done in re.findall(r'\[(#*) *\] \d+%: (\d+) of', ''.join(shown))
    }
    assert len(bars) == len(shown) and all(
        len(marks) == 30 * done // 1000 for done, marks in bars.items()
    )


def test_an_error_begins_a_new_line(clock, monkeypatch):
    monkeypatch.setattr(sys, 'stdout', _Terminal())
    with pytest.raises(KeyError), progress_bar.ProgressBar('Converting', 10) as bar:
        bar.advance(5)
        raise KeyError
    assert sys.stdout.getvalue().startswith('\rConverting [###') and sys.stdout.getvalue().endswith(
        ' left\n'
    )


def test_few_images(clock, capsys):
    bar = progress_bar.ProgressBar('Converting', 1)
    bar.advance(1)  # at once: no division by zero
    assert (
        capsys.readouterr().out == 'Converting 100%: 1 of 1 images, 1000 images/s, 0:00:00 left\n'
    )
