"""The tutorial's module `cifar10`, with its flags, on the package's input and network.

Names, arguments and results are those of all versions of the tutorial. A program may set constants
and flags before it builds its graph. The import defines the flags.
"""

import argparse
import copy
import dataclasses
import gzip  # noqa: F401 (programs use `import *`)
import os  # noqa: F401
import re
import sys
import tarfile  # noqa: F401

from absl import flags
from six.moves import urllib  # noqa: F401
import tensorflow.compat.v1 as tf

from cifar10 import input, model, multi_gpu  # noqa: F401 (programs use `cifar10.input`)
from cifar10.config import (  # noqa: F401 (programs use them)
    CLASSIC,
    INITIAL_LEARNING_RATE,
    LEARNING_RATE_DECAY_FACTOR,
    MOVING_AVERAGE_DECAY,
    NUM_EPOCHS_PER_DECAY,
    RunLength,
)
from cifar10.data import preparation
from cifar10.tutorial import cifar10_input, train as train_lib

FLAGS = tf.app.flags.FLAGS
# Programs of December 2017 add their flags to this parser.
parser = argparse.ArgumentParser()

for _name, _default, _help, _define in [
    (
        'batch_size',
        CLASSIC.batch_size,
        'Number of images to process in a batch.',
        flags.DEFINE_integer,
    ),
    ('data_dir', '/tmp/cifar10_data', 'Path to the CIFAR-10 data directory.', flags.DEFINE_string),
    ('use_fp16', False, 'Train the model using fp16.', flags.DEFINE_boolean),
]:
    if _name not in FLAGS:  # The program may define the flag, before or after the import.
        _define(_name, _default, _help, allow_override=True)
    parser.add_argument('--' + _name, type=type(_default), default=_default, help=_help)

IMAGE_SIZE = cifar10_input.IMAGE_SIZE
NUM_CLASSES = cifar10_input.NUM_CLASSES
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = cifar10_input.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = cifar10_input.NUM_EXAMPLES_PER_EPOCH_FOR_EVAL
TOWER_NAME = multi_gpu.TOWER_NAME
DATA_URL = 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz'

_INITIAL = dict(globals())


def __getattr__(name):  # PEP 562: a submodule that was imported before this module
    if 'cifar10.' + name in sys.modules:
        return sys.modules['cifar10.' + name]
    raise AttributeError(f"module 'cifar10' has no attribute {name!r}")


def _flag(name):
    """Return the value of a flag; parse only this flag if the program has not parsed its flags."""
    # Some programs replace cifar10.FLAGS by the result of argparse.
    if FLAGS is not tf.app.flags.FLAGS or FLAGS.is_parsed():
        return getattr(FLAGS, name)
    if not FLAGS[name].using_default_value:
        return FLAGS[name].value
    alone = flags.FlagValues()
    alone[name] = copy.deepcopy(FLAGS[name])
    alone(sys.argv, known_only=True)
    return alone[name].value


def _input_constant(name):
    """Return the value that the program has set in this module, or else that of cifar10_input."""
    return getattr(cifar10_input, name) if globals()[name] == _INITIAL[name] else globals()[name]


def _dtype():
    return tf.float16 if _flag('use_fp16') else tf.float32


def _activation_summary(x):
    """Add summaries of the histogram and sparsity of `x`, with tags without the tower's name."""
    name = re.sub(f'{TOWER_NAME}_[0-9]*/', '', x.op.name)
    tf.summary.histogram(name + '/activations', x)
    tf.summary.scalar(name + '/sparsity', tf.nn.zero_fraction(x))


def _variable_on_cpu(name, shape, initializer):
    """Return a variable in CPU memory: float32, or float16 with --use_fp16."""
    with tf.device('/cpu:0'):
        return tf.get_variable(name, shape, _dtype(), initializer)


def _variable_with_weight_decay(name, shape, stddev, wd):
    """Return a variable with truncated normal initial values.

    Unless `wd` is None, add wd * l2_loss to the collection 'losses'.
    """
    variable = _variable_on_cpu(
        name, shape, tf.truncated_normal_initializer(stddev=stddev, dtype=_dtype())
    )
    if wd is not None:
        tf.add_to_collection('losses', tf.multiply(tf.nn.l2_loss(variable), wd, name='weight_loss'))
    return variable


def maybe_download_and_extract():
    """Download CIFAR-10 to --data_dir if it is missing; see cifar10.data.preparation.

    A DATA_URL that the program has changed is the only host.
    """
    url = None if _INITIAL['DATA_URL'] == DATA_URL else DATA_URL
    preparation.maybe_download_and_extract(_flag('data_dir'), url)


def distorted_inputs(data_dir=None, batch_size=None):
    """Return batches of distorted training images; see cifar10_input.distorted_inputs.

    An argument None means the value of its flag.
    """
    return _cast(
        cifar10_input.distorted_inputs(
            data_dir or _flag('data_dir'),
            batch_size or _flag('batch_size'),
            _input_constant('IMAGE_SIZE'),
            _input_constant('NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN'),
        )
    )


def inputs(eval_data, data_dir=None, batch_size=None, num_epochs=None):
    """Return batches of undistorted images; see cifar10_input.inputs.

    `data_dir` or `batch_size` None means the value of the flag.
    """
    return _cast(
        cifar10_input.inputs(
            eval_data,
            data_dir or _flag('data_dir'),
            batch_size or _flag('batch_size'),
            num_epochs,
            _input_constant('IMAGE_SIZE'),
        )
    )


def _cast(images_and_labels):
    return (
        tuple(tf.cast(tensor, tf.float16) for tensor in images_and_labels)
        if _flag('use_fp16')
        else images_and_labels
    )


def inference(images):
    """Build cifar10.model.inference with summaries of its activations.

    Args:
      images: a tensor or array, [batch, height, width, 3].

    Returns:
      Logits, [batch, NUM_CLASSES].
    """
    earlier = len(tf.get_collection(tf.GraphKeys.ACTIVATIONS))
    logits = model.inference(tf.convert_to_tensor(images), NUM_CLASSES)
    for activations in tf.get_collection(tf.GraphKeys.ACTIVATIONS)[earlier:]:
        _activation_summary(activations)
    return logits


loss = model.loss
_add_loss_summaries = train_lib.add_loss_summaries


def train(total_loss, global_step):
    """Return tutorial.train.train with the constants and flags of this module."""
    return train_lib.train(
        total_loss,
        global_step,
        RunLength(_flag('batch_size'), NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN),
        dataclasses.replace(
            CLASSIC,
            initial_learning_rate=INITIAL_LEARNING_RATE,
            num_epochs_per_decay=NUM_EPOCHS_PER_DECAY,
            learning_rate_decay_factor=LEARNING_RATE_DECAY_FACTOR,
            moving_average_decay=MOVING_AVERAGE_DECAY,
        ),
    )
