"""Devices of towers and variables."""

import tensorflow.compat.v1 as tf

GPU_REMEDY = (
    "if there is an NVIDIA GPU: pip install 'tensorflow[and-cuda]' on Linux; TF_CPP_MIN_LOG_LEVEL=0 shows TensorFlow's "
    'messages about GPUs'
)


def tower_devices(num_devices):
    """Return `num_devices` device names: of GPUs, repeated if too few, or of CPU devices."""
    num_gpus = len(tf.config.experimental.list_physical_devices('GPU'))
    return [f'/gpu:{i % num_gpus}' if num_gpus else f'/cpu:{i}' for i in range(num_devices)]


def variables_on(device):
    """Return a context manager that places the variables of tf.get_variable on the device."""

    def get(getter, *args, **kwargs):
        with tf.device(device):
            return getter(*args, **kwargs)

    return tf.variable_scope(tf.get_variable_scope(), custom_getter=get)
