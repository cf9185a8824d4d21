"""The cores that a launcher gives to its tasks."""

import os
import re

import pytest

from cifar10.distributed import launching
from tests.helpers.fake_tasks import launch


@pytest.mark.parametrize(
    'cores, num_workers, shares',
    [
        ({0, 1}, 2, [[0], [1]]),
        ({4, 7, 5, 6}, 2, [[4, 5], [6, 7]]),
        ({3, 8}, 4, [[3], [3], [8], [8]]),
        ({2}, 3, [[2]] * 3),
        ({0, 1, 2}, 2, [[], []]),
        ({0, 1}, 3, [[], [], []]),
        ({0, 1}, 1, [[0, 1]]),
    ],
)
def test_shares_of_the_cores(monkeypatch, cores, num_workers, shares):
    monkeypatch.setattr(os, 'sched_getaffinity', lambda process: cores, raising=False)
    assert [launching._share_of_cores(index, num_workers) for index in range(num_workers)] == shares


def test_a_system_that_does_not_tell_the_cores(monkeypatch):
    monkeypatch.delattr(os, 'sched_getaffinity', raising=False)
    assert launching._share_of_cores(0, 1) == []


@pytest.mark.skipif(
    not hasattr(os, 'sched_getaffinity'), reason='a system that does not tell the cores'
)
def test_workers_share_the_cores(trainer, capsys):
    """As many workers as cores: one each, and all of them for the parameter server."""
    cores = os.sched_getaffinity(0)
    one = trainer(
        """
num_cores = %d if task == 'ps 0' else 1
while len(os.sched_getaffinity(0)) != num_cores:  # not set yet
    time.sleep(0.01)
print(*os.sched_getaffinity(0))"""
        % len(cores)
    )
    assert launch(one, 1, len(cores)) == 0
    found = dict(re.findall(r'\[(.*)\] (.*)', capsys.readouterr().out))
    assert set(map(int, found.pop('ps 0').split())) == cores
    assert sorted(map(int, found.values())) == sorted(cores)
