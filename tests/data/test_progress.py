"""Progress lines."""

import io

from cifar10.data import progress


def test_there_is_a_line_for_each_tenth(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress.time, 'monotonic', lambda: now[0])
    bar = progress.ProgressBar('Converting', 200)
    for _ in range(40):
        now[0] += 1
        bar.advance(5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'Converting 10%: 20 of 200 images, 5 images/s, 0:00:36 left'
    assert lines[9] == 'Converting 100%: 200 of 200 images, 5 images/s, 0:00:00 left'
    assert len(lines) == 10
    stream = io.StringIO()
    progress.ProgressBar('Sending', 400, 'bytes', stream).advance(400)  # in zero seconds
    assert stream.getvalue() == 'Sending 100%: 400 of 400 bytes, 400000 bytes/s, 0:00:00 left\n'
