"""Public names of `import cifar10`, as the books print them."""

import importlib
import inspect
import json
import os
import subprocess
import sys

import pytest

import cifar10
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


def test_the_default_directory():
    for name in ('maybe_download_and_extract', 'distorted_inputs', 'inputs'):
        parameters = inspect.signature(getattr(cifar10, name)).parameters
        assert parameters['data_dir'].default == '/tmp/cifar10_data', name


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
    """It imports no TensorFlow, and keeps the environment and the signal handlers."""
    is_unchanged, listed, found = _run_python("""
import json, os, signal, sys

def state():
    return dict(os.environ), signal.getsignal(signal.SIGINT), 'tensorflow' in sys.modules

before = state()
import cifar10
listed = dir(cifar10)
numbers = cifar10.NUM_CLASSES, cifar10.MOVING_AVERAGE_DECAY, callable(cifar10.maybe_download_and_extract)
print(json.dumps([state() == before, listed, numbers]))
""")
    assert is_unchanged and found == [10, 0.9999, True]
    assert set(CONSTANTS) | set(FUNCTIONS) | set(MODULES) <= set(listed)


@pytest.mark.parametrize('name', MODULES)
def test_a_module_as_an_attribute(monkeypatch, name):
    """As after a bare import, without an earlier import of the module."""
    module = importlib.import_module('cifar10.' + name)
    monkeypatch.delattr(cifar10, name)
    assert getattr(cifar10, name) is module
