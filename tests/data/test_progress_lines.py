"""Progress lines."""

from cifar10.data import progress_lines


def test_there_is_a_line_for_each_tenth(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress_lines.time, 'monotonic', lambda: now[0])
    shown = []
    lines = progress_lines.ProgressLines(shown.append, 'Converting', 200)
    for _ in range(40):
        now[0] += 1
        lines.advance(5)
    assert shown[0] == 'Converting 10%: 20 of 200 images, 5 images/s, 0:00:36 left'
    assert shown[9] == 'Converting 100%: 200 of 200 images, 5 images/s, 0:00:00 left'
    assert len(shown) == 10
    progress_lines.ProgressLines(shown.append, 'Sending', 400, 'bytes').advance(
        400
    )  # in zero seconds
    assert shown[10] == 'Sending 100%: 400 of 400 bytes, 400000 bytes/s, 0:00:00 left'
