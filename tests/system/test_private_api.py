"""Private names of TensorFlow: this version has them; a version without them gives one line."""

import re

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

from cifar10.system import private_api
from tests.helpers import messages, pages, programs
from tf1_runner import private_api as of_the_runner

# TensorFlow imports all these modules itself.
WITHOUT_MODULES = """
import sys, tensorflow.compat.v1
for package, name in [('framework', 'kernels'), ('training', 'moving_averages')]:
    package = 'tensorflow.python.' + package
    delattr(sys.modules[package], name)
    sys.modules[package + '.' + name] = None
"""


def _line(name):
    return (
        f'error: TensorFlow {tf.__version__} lacks tensorflow.python.{name}: install the newest tested '
        "version, pip install 'tensorflow==2.21.*' (with Python 3.10 to 3.13)"
    )


def test_this_version_has_all_names():
    for name in private_api._MODULES:
        assert getattr(private_api, name).__name__ == name
    assert of_the_runner.nest.__name__ == 'tensorflow.python.util.nest'
    with pytest.raises(AttributeError, match='^other$'):
        private_api.other  # noqa: B018 (it raises)


def test_the_remedy_is_the_newest_tested_version():
    rows = re.findall(r'^\| (3\.[\d., ]+) \| (\d+)\.(\d+)\.\d+ \|', pages.read('versions.md'), re.M)
    newest = max((int(major), int(minor)) for _, major, minor in rows)
    pythons = [
        int(python)
        for row, *version in rows
        if tuple(map(int, version)) == newest
        for python in re.findall(r'3\.(\d+)', row)
    ]
    versions = "'tensorflow=={}.{}.*' (with Python 3.{} to 3.{})"
    assert _line('').endswith(versions.format(*newest, min(pythons), max(pythons)))


@pytest.mark.slow
def test_a_version_without_modules(tmp_path, data_dir):
    (tmp_path / 'program.py').write_text('print("runs")\n')
    train = ['--data_dir=' + data_dir, f'--train_dir={tmp_path}/run', '--compute_dtype=bfloat16']
    commands = [['cifar10_train', *train], ['cifar10_run', str(tmp_path / 'program.py')]]
    trained, run = programs.call_in_one_process(commands, preamble=WITHOUT_MODULES)
    line = _line('framework.kernels.get_registered_kernels_for_op')
    assert (trained[0], trained[2]) == (1, f'cifar10_train.py: {line}\n')
    line = _line('training.moving_averages.assign_moving_average')
    assert run == [f'cifar10_run.py: {line}', '', '']


def test_a_module_without_a_name(monkeypatch):
    monkeypatch.delattr(timeline, 'Timeline')
    with messages.raises('lacks tensorflow.python.client.timeline.Timeline: '):
        private_api.Timeline  # noqa: B018 (it raises)
