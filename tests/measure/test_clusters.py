"""Clusters that are measured: what is read from log lines, and a whole measurement."""

import datetime
import json

import pytest

from cifar10.measure import clusters
from tests.helpers import programs


def test_marks(monkeypatch):
    """Between the first log line after the warm-up and the last one; only the chief's lines
    count."""
    sent = iter([1000, 5000, 25000])
    monkeypatch.setattr(clusters, '_loopback_bytes', lambda: next(sent))
    marks = clusters._Marks()
    for line in [
        '[worker 0] 2026-01-01 10:00:00.000000: step 1, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)',
        '[worker 1] 2026-01-01 10:00:00.500000: step 20, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)',
        'Filling',
        '2026-01-01 10:00:01.000000: step 22, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)',
        '[worker 0] 2026-01-01 10:00:05.000000: step 42, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)',
    ]:
        marks.read(line)
    started, ended = [
        datetime.datetime(2026, 1, 1, *when) for when in [(9, 59, 50), (10, 0, 6, 500000)]
    ]
    assert tuple(marks.run(20, started, ended)) == pytest.approx((0.2, 1000, 10, 1.5))
    with pytest.raises(ValueError):
        marks.run(43, started, ended)


@pytest.mark.long
def test_the_subcommand(tmp_path, data_dir):
    """What the loopback interface carries is what is sent on paper, give or take a tenth."""
    path = tmp_path / 'figures.json'
    programs.DEADLINE_SECS, before = 600, programs.DEADLINE_SECS
    try:
        stdout = programs.succeed(
            'cifar10_benchmark',
            'distributed',
            '--rounds=1',
            '--batch_size=8',
            '--warmup_steps=10',
            '--steps=20',
            '--data_dir=%s' % data_dir,
            '--json=%s' % path,
        )
    finally:
        programs.DEADLINE_SECS = before
    (figures,) = json.loads(path.read_text())['rounds'].values()
    for mode in ('allreduce', 'sync', 'async', 'average'):
        for workers in (2, 4):
            name = '%s, %d workers' % (mode, workers)
            (measured,) = figures['MB per update, ' + name]
            (on_paper,) = figures['MB per update on paper, ' + name]
            assert on_paper <= measured < 1.1 * on_paper, name
            assert figures['updates/sec, ' + name][0] > 0
    assert 'updates/sec, one process, 4 towers' in stdout


def test_no_baseline(data_dir):
    status, _, stderr = programs.call(
        'cifar10_benchmark',
        'distributed',
        '--baseline',
        '--rounds=1',
        '--dataset=cifar10',
        '--data_dir=%s' % data_dir,
    )
    assert status == 1
    assert 'leave out --baseline' in stderr and len(stderr.splitlines()) == 1
