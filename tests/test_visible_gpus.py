"""GPUs of this machine: hidden from all tests but those marked `gpu`."""

import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

from tests.helpers import programs

_DEADLINE_SECS = 500


@pytest.mark.slow
def test_the_gpus_of_this_machine(original_environment):
    """A process of its own runs the tests marked `gpu`: in this one, the GPUs are hidden."""
    assert not tf.config.experimental.list_physical_devices('GPU')
    process = subprocess.run(
        [sys.executable, '-m', 'pytest', '-m', 'gpu'],
        cwd=programs.ROOT,
        env=original_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_DEADLINE_SECS,
    )
    assert process.returncode == 0, process.stdout
    if ' passed' not in process.stdout:
        pytest.skip('TensorFlow sees no GPU')
