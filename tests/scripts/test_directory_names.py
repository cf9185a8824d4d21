"""Directory names: accepted literally, or rejected if TensorFlow reads them as a pattern."""

import pytest

from cifar10.runs import checkpoint
from tests.helpers import faults, messages, programs

pytestmark = pytest.mark.slow


def test_a_name_that_works(tmp_path, data_dir, monkeypatch):
    """Train, resume and evaluate."""
    monkeypatch.chdir(str(tmp_path))
    name = '--fresh/"a run" of it\'s, gr\u00fcn \u2713 $HOME & %s {}; #1'
    for step in (1, 2):
        status, stdout, stderr = programs.call(
            'cifar10_train', *faults.job(data_dir, name, f'--max_steps={step}')
        )
        assert (status, stderr) == (0, '')
        assert checkpoint.read_latest(str(tmp_path / name)).step == step
    assert messages.resuming(tmp_path / name, 1) in stdout
    status, stdout, stderr = programs.call(
        'cifar10_eval', '--run_once', *faults.evaluation(data_dir, name, name + '/eval')
    )
    assert (status, stderr) == (0, '') and 'of 50, step 2), ' in stdout
