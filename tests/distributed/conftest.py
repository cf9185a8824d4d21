"""Fake tasks that end with their test."""

import pytest

from cifar10.distributed import launcher
from tests.distributed.fake_tasks import DEADLINE_SECS, Trainer


@pytest.fixture
def trainer(tmp_path):
    """Return a function that makes the Trainer of a source."""
    made = []

    def make(source):
        made.append(Trainer(tmp_path, source))
        return made[0]

    yield make
    left = made[0].running()
    made[0].end_all()
    assert left == [] and not (tmp_path / 'too late').exists()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Lengthen the grace periods: on a busy machine, the tasks end by themselves."""
    for name in ('CHIEF_GRACE_SECS', 'GRACE_SECS'):
        monkeypatch.setattr(launcher, name, DEADLINE_SECS)
