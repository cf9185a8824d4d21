"""Cores, devices, threads, sub-batches, and the configuration of sessions."""

import os
import platform
import re
from typing import NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow.python.client import device_lib

_SUB_BATCHES_PER_CORE = 2  # so that a core that falls behind has less to do
_MIN_EXAMPLES_PER_SUB_BATCH = 8  # smaller sub-batches cost more than they bring


class Threads(NamedTuple):
    """Numbers of threads; 0 where none is given."""

    intra_op: int = 0  # that share one operation
    inter_op: int = 0  # for operations that run in parallel
    prefetch: int = 0  # that fill the prefetch queue


def set_up_tensorflow():
    """Set TensorFlow up for the graphs of this package."""
    # no deprecation warnings: this package is what they warn about
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.enable_resource_variables()  # as they are by default since TensorFlow 2.0
    # or TensorBoard shows a function for both branches of each tf.cond in the moving averages
    tf.disable_control_flow_v2()


def num_cores():
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()


def is_gpu(device):
    """Return whether a device name, like /gpu:0 or /device:GPU:0, is that of a GPU."""
    return (tf.DeviceSpec.from_string(device).device_type or '').upper() == 'GPU'


def num_sub_batches(devices, batch_size, inter_op=0):
    """Return the number of sub-batches of each tower's batch that make use of all cores; 1 on GPUs.

    Args:
      devices: one device name per tower.
      batch_size: examples per tower.
      inter_op: threads for operations that run in parallel; 0 means one per core.
    """
    if is_gpu(devices[0]):
        return 1
    return max(
        1,
        min(
            _SUB_BATCHES_PER_CORE * (inter_op or num_cores()) // len(devices),
            batch_size // _MIN_EXAMPLES_PER_SUB_BATCH,
        ),
    )


def choose_threads(devices, batch_size, overrides=Threads()):
    """Choose the numbers of threads that are not given.

    On a CPU, cores that work on examples of their own are faster than cores that share every
    operation and wait for each other at its end. So each operation gets one thread, and the towers'
    batches are cut into sub-batches for the cores.

    Args:
      devices: one device name per tower.
      batch_size: examples per tower.
      overrides: a Threads.

    Returns:
      A Threads, in which 0 leaves the number to TensorFlow.
    """
    # At least two: with one thread the trainer spends CPU time on waiting whenever the input is the
    # bottleneck.
    prefetch = overrides.prefetch or min(num_cores(), max(2, len(devices)))
    all_sub_batches = num_sub_batches(devices, batch_size, overrides.inter_op) * len(devices)
    one_per_operation = not is_gpu(devices[0]) and all_sub_batches >= (
        overrides.inter_op or num_cores()
    )
    return overrides._replace(
        intra_op=overrides.intra_op or int(one_per_operation), prefetch=prefetch
    )


def session_config(devices, threads=None, log_device_placement=False):
    """Return a tf.ConfigProto with these devices and no other GPUs.

    GPU memory is taken as it is needed.

    Args:
      devices: device names.
      threads: a Threads; None leaves threads and graph optimizers to TensorFlow.
      log_device_placement: whether to print the device of every operation.
    """
    distinct = set(devices)
    num_gpus = sum(map(is_gpu, distinct))
    config = tf.ConfigProto(
        device_count={'CPU': max(1, len(distinct) - num_gpus), 'GPU': num_gpus},
        gpu_options=tf.GPUOptions(allow_growth=True),
        allow_soft_placement=True,
        log_device_placement=log_device_placement,
    )
    if threads:
        config.intra_op_parallelism_threads = threads.intra_op
        config.inter_op_parallelism_threads = threads.inter_op
        # A second pass of the optimizers over these graphs finds nothing more, and would only delay
        # the start.
        rewrite = config.graph_options.rewrite_options
        rewrite.meta_optimizer_iterations = rewrite.ONE
    return config


def cpu_name():
    """Return the name of the processor."""
    if os.path.exists('/proc/cpuinfo'):
        with open('/proc/cpuinfo') as info:
            for name in re.findall('^model name\\s*: (.*)$', info.read(), re.M):
                return name
    return platform.processor() or platform.machine()


def gpu_names(config=None):
    """Return the names of the GPUs.

    Args:
      config: the tf.ConfigProto of the session that computes, which fixes how GPU memory is taken;
        None if there is none.
    """
    if not tf.config.experimental.list_physical_devices('GPU'):
        return []
    config = config or tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
    devices = [
        device for device in device_lib.list_local_devices(config) if device.device_type == 'GPU'
    ]
    return [re.sub('.*name: ([^,]*).*', r'\1', device.physical_device_desc) for device in devices]
