"""Public names of `import cifar10`, as the books print them."""

import importlib
import inspect
import json
import math
import os
import subprocess
import sys

import pytest

import cifar10
from cifar10.config import CLASSIC
from cifar10.input import InputSettings, Shard
from tests.helpers import programs

CONSTANTS = {
    'IMAGE_SIZE': 24,
    'NUM_CLASSES': 10,
    'NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN': 50000,
    'NUM_EXAMPLES_PER_EPOCH_FOR_EVAL': 10000,
    'MOVING_AVERAGE_DECAY': 0.9999,
    'NUM_EPOCHS_PER_DECAY': 350.0,
    'LEARNING_RATE_DECAY_FACTOR': 0.1,
    'INITIAL_LEARNING_RATE': 0.1,
    'TOWER_NAME': 'tower',
}
FUNCTIONS = {
    'maybe_download_and_extract': 'data.preparation',
    'distorted_inputs': 'input',
    'inputs': 'input',
    'inference': 'model',
    'loss': 'model',
    'train': 'tutorial.train',
}
MODULES = ['input', 'model', 'multi_gpu']


def test_the_defaults_of_the_functions():
    """The calls in books give only the parameters without a default."""
    missing = inspect.Parameter.empty
    defaults = {
        name: {
            parameter.name: parameter.default
            for parameter in inspect.signature(getattr(cifar10, name)).parameters.values()
        }
        for name in FUNCTIONS
    }
    assert defaults == {
        'maybe_download_and_extract': {
            'data_dir': '/tmp/cifar10_data',
            'data_url': None,
            'md5': None,
            'progress': print,
        },
        'distorted_inputs': {
            'data_dir': '/tmp/cifar10_data',
            'batch_size': 128,
            'settings': InputSettings(CLASSIC, False, Shard(0, 1)),
        },
        'inputs': {
            'eval_data': missing,
            'data_dir': '/tmp/cifar10_data',
            'batch_size': 128,
            'num_epochs': None,
        },
        'inference': {'images': missing, 'num_classes': 10, 'hparams': CLASSIC},
        'loss': {'logits': missing, 'labels': missing, 'scope': None, 'hparams': CLASSIC},
        'train': {
            'total_loss': missing,
            'global_step': missing,
            'run_length': (128, 50000, math.inf, 1),
            'hparams': CLASSIC,
        },
    }


def test_bare_calls_run(data_dir):
    """Only the data directory is given: its default is outside the test."""
    cifar10.maybe_download_and_extract(data_dir)
    images, labels = cifar10.distorted_inputs(data_dir)
    logits = cifar10.inference(images)
    loss = cifar10.loss(logits, labels)
    assert (images.shape.as_list(), labels.shape.as_list()) == ([128, 24, 24, 3], [128])
    assert (logits.shape.as_list(), loss.shape.as_list()) == ([128, 10], [])
    images, labels = cifar10.inputs(eval_data=True, data_dir=data_dir)
    assert (images.shape.as_list(), labels.shape.as_list()) == ([128, 24, 24, 3], [128])


def test_import_of_all_names():
    names = {}
    exec('from cifar10 import *', names)
    del names['__builtins__']
    functions = {
        name: getattr(importlib.import_module('cifar10.' + module), name)
        for name, module in FUNCTIONS.items()
    }
    assert names == dict(CONSTANTS, **functions)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'cifar10' has no attribute 'evaluate'"):
        cifar10.evaluate()
    with pytest.raises(ImportError, match="cannot import name 'evaluate' from 'cifar10'"):
        exec('from cifar10 import evaluate')


def _run_python(source):
    """Run Python in a new process; return the JSON that it prints."""
    inherited = {
        name: os.environ[name] for name in ('PATH', 'LD_LIBRARY_PATH') if name in os.environ
    }
    return json.loads(
        subprocess.run(
            [sys.executable, '-c', source],
            env=dict(inherited, PYTHONPATH=programs.ROOT),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
        ).stdout.decode()
    )


def test_the_import_changes_nothing():
    """It imports no TensorFlow, and keeps the environment, file descriptors and signal handlers."""
    unchanged, listed, found, with_tensorflow, still_unchanged = _run_python("""
import json, os, signal, sys

def descriptor(number):
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino

def state():
    return dict(os.environ), [descriptor(number) for number in range(100)], signal.getsignal(signal.SIGINT)

before = state()
import cifar10
unchanged = state() == before
listed = dir(cifar10)
numbers = cifar10.NUM_CLASSES, cifar10.MOVING_AVERAGE_DECAY, callable(cifar10.maybe_download_and_extract)
print(json.dumps([unchanged, listed, numbers, 'tensorflow' in sys.modules, state() == before]))
""")
    assert unchanged and still_unchanged and not with_tensorflow
    assert set(CONSTANTS) | set(FUNCTIONS) | set(MODULES) <= set(listed)
    assert found == [10, 0.9999, True]


@pytest.mark.parametrize('name', MODULES)
def test_a_module_as_an_attribute(monkeypatch, name):
    """As after a bare import, without an earlier import of the module."""
    module = importlib.import_module('cifar10.' + name)
    monkeypatch.delattr(cifar10, name)
    assert getattr(cifar10, name) is module
