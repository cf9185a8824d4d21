"""Messages that several test modules compare, as the programs print them."""

import re

import pytest

from cifar10.errors import UserError

NOT_AN_IMAGE = 'it is not a readable JPEG, PNG, GIF, BMP or WebP file'
RESUMED = r'Resuming from .*, step (\d+)$'

_TIME = r'(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: '


def log_lines(output):
    """Return (step, loss, examples/sec, sec/batch) of each log line, as text."""
    return re.findall(
        _TIME
        + r'step (\d+), loss = (\S+) \((\d+\.\d) examples/sec; (\d+\.\d{3}) sec/batch\)(?:, epoch .*)?$',
        output,
    )


def log_steps(output):
    """Return the step of each log line, as text."""
    return [step for step, *_ in log_lines(output)]


def precision(count):
    """Return a regular expression of the precision line; groups: precision, number correct,
    step."""
    return (
        _TIME
        + rf'precision @ 1 = ([01]\.\d{{3}}) \((\d+) of {count}, step (\d+)\), 95 % interval \S+ to \S+'
    )


def resuming(train_dir, step):
    """Return the line of a resumed run."""
    return f'Resuming from {train_dir}/model.ckpt-{step}, step {step}\n'


def nothing_to_do(train_dir, saved_step, last_step):
    """Return the line of a complete run."""
    return (
        f'Nothing to do: the run in {train_dir} has made {saved_step} of {last_step} steps; '
        'increase --max_steps or --epochs to extend it\n'
    )


def raises(pattern):
    """Expect a UserError whose message matches the regular expression."""
    return pytest.raises(UserError, match=pattern)
