"""What a bug report needs: the versions, and the names of the devices."""
import os
import platform
import re

import tensorflow.compat.v1 as tf
from tensorflow.python.client import device_lib

import cifar10
from cifar10.runs import machine


def line(config=None):
    """The versions of the package, Python and TensorFlow, and the names of the processor and the GPUs.

    Args:
      config: the tf.ConfigProto of the session that computes, which fixes how GPU memory is taken; None if there is none.
    """
    return 'cifar10 %s, Python %s, TensorFlow %s; %s' % (
        cifar10.__version__, platform.python_version(), tf.__version__,
        ', '.join(['%s (cores: %d)' % (processor(), machine.num_cores())] + gpus(config)))


def processor():
    """The name of the processor."""
    if os.path.exists('/proc/cpuinfo'):
        with open('/proc/cpuinfo') as info:
            for name in re.findall('^model name\\s*: (.*)$', info.read(), re.M):
                return name
    return platform.processor() or platform.machine()


def gpus(config=None):
    """The names of the GPUs, see `line`."""
    if not tf.config.experimental.list_physical_devices('GPU'):
        return []
    config = config or tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
    devices = [device for device in device_lib.list_local_devices(config) if device.device_type == 'GPU']
    return [re.sub('.*name: ([^,]*).*', r'\1', device.physical_device_desc) for device in devices]
