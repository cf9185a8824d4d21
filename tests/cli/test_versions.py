"""What a bug report needs."""

import platform
import re
from types import SimpleNamespace

import pytest
import tensorflow as installed
import tensorflow.compat.v1 as tf

import cifar10
from cifar10.cli import program
from cifar10.runs import machine
from tests.helpers import programs


def test_the_line(monkeypatch):
    monkeypatch.setattr(machine, 'num_cores', lambda: 3)
    monkeypatch.setattr(machine, 'processor', lambda: 'Some Processor')
    monkeypatch.setattr(machine, 'gpus', lambda config: ['Some GPU'] if config == 'config' else [])
    told = 'cifar10 %s, Python %s, TensorFlow %s; Some Processor (cores: 3)' % (
        cifar10.__version__,
        platform.python_version(),
        installed.__version__,
    )
    assert program.versions() == told and program.versions('config') == told + ', Some GPU'


@pytest.mark.slow
@pytest.mark.parametrize(
    'script, args',
    [
        ('cifar10_train', ['--no-such-flag']),
        ('cifar10_results', []),
        ('cifar10_launch', []),
        ('cifar10_run', ['program.py']),
    ],
)
def test_version(script, args):
    """The flag comes first, whatever else is missing or wrong."""
    stdout = programs.run(script, '--version', *args)[1]
    assert re.match(
        r'cifar10 %s, Python %s, TensorFlow %s; .*\(cores: \d+\).*\n$'
        % (cifar10.__version__, platform.python_version(), installed.__version__),
        stdout,
    )


def test_the_processor():
    assert machine.processor().strip()


@pytest.mark.parametrize('allow_growth', [True, False])
def test_names_of_gpus(monkeypatch, allow_growth):
    """As TensorFlow's DeviceAttributes describe them; memory is taken as the session's own config
    says."""
    described = (
        'device: 0, name: Tesla V100-SXM2-16GB, pci bus id: 0000:00:1e.0, compute capability: 7.0'
    )
    used = []

    def listed(config):
        used.append(config.gpu_options.allow_growth)
        return [SimpleNamespace(device_type='CPU', physical_device_desc='')] + 2 * [
            SimpleNamespace(device_type='GPU', physical_device_desc=described)
        ]

    monkeypatch.setattr(machine.device_lib, 'list_local_devices', listed)
    monkeypatch.setattr(tf.config.experimental, 'list_physical_devices', lambda kind: ['GPU'] * 2)
    config = None if allow_growth else tf.ConfigProto()
    assert machine.gpus(config) == ['Tesla V100-SXM2-16GB'] * 2 and used == [allow_growth]
    monkeypatch.setattr(tf.config.experimental, 'list_physical_devices', lambda kind: [])
    assert machine.gpus(config) == [] and len(used) == 1
