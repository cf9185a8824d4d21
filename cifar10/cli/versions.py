"""What a bug report needs: the versions, and the names of the devices."""

import platform

import tensorflow.compat.v1 as tf

from cifar10 import __version__
from cifar10.runs import machine


def line(config=None):
    """The versions of the package, Python and TensorFlow, and the names of the processor and the
    GPUs.

    Args:
      config: see machine.gpus.
    """
    return 'cifar10 %s, Python %s, TensorFlow %s; %s' % (
        __version__,
        platform.python_version(),
        tf.__version__,
        ', '.join(
            ['%s (cores: %d)' % (machine.processor(), machine.num_cores())] + machine.gpus(config)
        ),
    )
