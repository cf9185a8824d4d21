"""Cores, devices, threads, sub-batches, type of the products, session configuration."""

import math
import os
import pathlib
import platform
import re
from typing import NamedTuple, Sequence

import tensorflow.compat.v1 as tf

GPU_REMEDY = "if there is an NVIDIA GPU: pip install 'tensorflow[and-cuda]' on Linux"
_SUB_BATCHES_PER_CORE = 2  # more than one, to balance the load
_MIN_EXAMPLES_PER_SUB_BATCH = 8  # Smaller sub-batches are slower.
_CPU_INFO_FILE = '/proc/cpuinfo'  # on Linux
_CGROUP = '/sys/fs/cgroup'  # on Linux, the control group of a container
_BFLOAT16_INSTRUCTIONS = {'avx512_bf16', 'amx_bf16'}


class Threads(NamedTuple):
    """Numbers of threads; 0 is unset."""

    intra_op: int = 0  # within one operation
    inter_op: int = 0  # for parallel operations
    prefetch: int = 0  # for the prefetch queue


class Resources(NamedTuple):
    """Devices and threads of a process."""

    devices: Sequence[str]  # one per tower
    variable_strategy: str  # one of config.VARIABLE_STRATEGIES
    threads: Threads

    @property
    def variable_device(self):
        """The device of the variables."""
        return '/cpu:0' if self.variable_strategy == 'cpu' else self.devices[0]


def set_up_tensorflow():
    """Configure TensorFlow for the graphs of this package."""
    # Users cannot act on warnings of deprecated functions in this package. Errors are raised, too.
    tf.logging.set_verbosity(tf.logging.FATAL)
    tf.enable_resource_variables()  # the default since TensorFlow 2.0
    # Otherwise TensorBoard shows functions for each tf.cond of the moving averages.
    tf.disable_control_flow_v2()


def num_cores():
    """Return the number of cores that the affinity and a container's quota leave to this process.

    A quota is CPU time per period. Sources of the formats: Linux, Documentation,
    admin-guide/cgroup-v2.rst (one file) and scheduler/sched-bwc.rst (version 1, two files).
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
    for names in (['cpu.max'], ['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us']):
        paths = [pathlib.Path(_CGROUP, name) for name in names]
        if all(path.exists() for path in paths):
            quota, period = ' '.join(path.read_text() for path in paths).split()
            if quota not in ('max', '-1'):
                cores = min(cores, math.ceil(int(quota) / int(period)))
    return cores


def is_gpu(device):
    """Return True if a device name, like /gpu:0 or /device:GPU:0, is a GPU."""
    return (tf.DeviceSpec.from_string(device).device_type or '').upper() == 'GPU'


def num_sub_batches(devices, batch_size, inter_op=0):
    """Return the number of sub-batches per tower, enough for all cores; 1 on GPUs.

    A network without `cpu_kernels.per_image` is not divided.

    Args:
      devices: one device name per tower.
      batch_size: examples per tower.
      inter_op: threads for parallel operations; 0 is one per core.
    """
    if is_gpu(devices[0]):
        return 1
    for_cores = _SUB_BATCHES_PER_CORE * (inter_op or num_cores()) // len(devices)
    return max(1, min(for_cores, batch_size // _MIN_EXAMPLES_PER_SUB_BATCH))


def resources(devices, num_sub_batches, variable_strategy='cpu', overrides=Threads()):
    """Choose the Resources of a process.

    Cores that share an operation wait for each other at its end. On a CPU, one sub-batch per core
    is faster. So an operation gets one thread, if there are enough sub-batches. TensorFlow's own
    choice would ignore the CPU quota of a container.

    Args:
      devices: one device name per tower.
      num_sub_batches: the number of sub-batches per tower in the graph.
      variable_strategy: one of config.VARIABLE_STRATEGIES.
      overrides: a Threads; 0 is chosen here.
    """
    inter_op = overrides.inter_op or num_cores()
    one_per_operation = not is_gpu(devices[0]) and num_sub_batches * len(devices) >= inter_op
    threads = Threads(
        overrides.intra_op or (1 if one_per_operation else num_cores()),
        inter_op,
        overrides.prefetch or min(num_cores(), len(devices)),
    )
    return Resources(devices, variable_strategy, threads)


def session_config(devices, threads=None, log_device_placement=False):
    """Return a tf.ConfigProto with these devices only.

    GPU memory is allocated on demand.

    Args:
      devices: device names.
      threads: a Threads; None leaves threads and graph optimizers to TensorFlow.
      log_device_placement: True prints the device of every operation.
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
        # A second pass of the graph optimizers finds nothing in these graphs, but delays the start.
        rewrite = config.graph_options.rewrite_options
        rewrite.meta_optimizer_iterations = rewrite.ONE
    return config


def _cpu_info(field):
    """Return a field of the first core in /proc/cpuinfo, or ''."""
    path = pathlib.Path(_CPU_INFO_FILE)
    text = path.read_text() if path.exists() else ''
    return (re.findall(f'^{field}\\s*: (.*)$', text, re.M) + [''])[0]


def cpu_name():
    """Return the name of the processor."""
    return _cpu_info('model name') or platform.processor() or platform.machine()


def onednn_setting():
    """Return how the environment switches oneDNN, as TensorFlow reads it: on, off or default."""
    value = os.environ.get('TF_ENABLE_ONEDNN_OPTS', '').lower()
    return 'off' if value in ('0', 'false') else 'on' if value else 'default'


def compute_dtype(choice, is_gpu):
    """Return the tf.DType of the factors in the hidden layers.

    `auto` is bfloat16 if TensorFlow computes with oneDNN on a processor that has instructions for
    products in bfloat16, else float32. Without these instructions, bfloat16 is slower. GPUs with
    such instructions multiply float32 as TF32, so `auto` is float32 there.

    Args:
      choice: HParams.compute_dtype.
      is_gpu: True for a network on a GPU.
    """
    if choice != 'auto':
        return tf.as_dtype(choice)
    is_fast = (
        not is_gpu
        and _BFLOAT16_INSTRUCTIONS & set(_cpu_info('flags').split())
        and onednn_setting() != 'off'
        and not tf.__version__.startswith('1.')  # It has no oneDNN.
    )
    return tf.bfloat16 if is_fast else tf.float32


def gpu_names(config=None):
    """Return the names of the GPUs.

    Args:
      config: the tf.ConfigProto of the session, or None. The first use of the GPUs fixes the
        allocation of their memory.
    """
    if not tf.config.experimental.list_physical_devices('GPU'):
        return []
    from tensorflow.python.client import device_lib

    config = config or tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
    return [
        re.sub('.*name: ([^,]*).*', r'\1', device.physical_device_desc)
        for device in device_lib.list_local_devices(config)
        if device.device_type == 'GPU'
    ]
