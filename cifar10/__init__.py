"""Classic graph-mode TensorFlow on CIFAR-10: the names that books import.

Each name is imported from its module on first use. `import cifar10` itself loads no TensorFlow,
sets no environment variable and opens no data file.
"""

import importlib as _importlib

__version__ = '1.9.0'

_MODULES = {  # module of each name
    'maybe_download_and_extract': 'cifar10.data.preparation',
    'distorted_inputs': 'cifar10.input',
    'inputs': 'cifar10.input',
    'inference': 'cifar10.model',
    'loss': 'cifar10.model',
    'train': 'cifar10.tutorial.train',
    'IMAGE_SIZE': 'cifar10.distortions',
    'NUM_CLASSES': 'cifar10.config',
    'NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN': 'cifar10.config',
    'NUM_EXAMPLES_PER_EPOCH_FOR_EVAL': 'cifar10.config',
    'MOVING_AVERAGE_DECAY': 'cifar10.config',
    'NUM_EPOCHS_PER_DECAY': 'cifar10.config',
    'LEARNING_RATE_DECAY_FACTOR': 'cifar10.config',
    'INITIAL_LEARNING_RATE': 'cifar10.config',
    'TOWER_NAME': 'cifar10.multi_gpu',
}
__all__ = sorted(_MODULES)
# Modules as attributes, for cifar10.model.inference
_SUBMODULES = ['input', 'model', 'multi_gpu']


def __getattr__(name):  # PEP 562
    if name in _SUBMODULES:
        return _importlib.import_module('cifar10.' + name)
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(_importlib.import_module(_MODULES[name]), name)


def __dir__():
    return sorted(list(globals()) + list(_MODULES) + _SUBMODULES)
