"""The tutorial's module `cifar10`, with its flags, on the package's input and network.

The names, arguments and results are the tutorial's, in all of its versions. A program may set the
constants and the flags before it builds its graph. Importing the module defines the flags; the
package's face, `import cifar10`, has the same functions without flags.
"""

import argparse
import copy
import gzip  # noqa: F401 (as `os`, `tarfile` and `urllib`, a name that programs take from here with `import *`)
import os  # noqa: F401
import re
import sys
import tarfile  # noqa: F401

from absl import flags
from six.moves import urllib  # noqa: F401
import tensorflow.compat.v1 as tf

from cifar10 import input, model, multi_gpu  # noqa: F401 (`cifar10.input`: as in the face)
from cifar10.config import (  # noqa: F401 (programs take them from here)
    CLASSIC,
    INITIAL_LEARNING_RATE,
    LEARNING_RATE_DECAY_FACTOR,
    MOVING_AVERAGE_DECAY,
    NUM_EPOCHS_PER_DECAY,
    RunLength,
)
from cifar10.data import download
from cifar10.tutorial import cifar10_input, update

FLAGS = tf.app.flags.FLAGS
# of the versions of December 2017, whose programs add their flags to it
parser = argparse.ArgumentParser()

for _name, _default, _help, _define in [
    (
        'batch_size',
        CLASSIC.batch_size,
        'Number of images to process in a batch.',
        flags.DEFINE_integer,
    ),
    (
        'data_dir',
        '/tmp/cifar10_data',
        'Path to the CIFAR-10 data directory.',
        flags.DEFINE_string,
    ),
    ('use_fp16', False, 'Train the model using fp16.', flags.DEFINE_boolean),
]:
    if _name not in FLAGS:  # a program may define it itself, before or after this
        _define(_name, _default, _help, allow_override=True)
    parser.add_argument('--' + _name, type=type(_default), default=_default, help=_help)

IMAGE_SIZE = cifar10_input.IMAGE_SIZE
NUM_CLASSES = cifar10_input.NUM_CLASSES
NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = cifar10_input.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN
NUM_EXAMPLES_PER_EPOCH_FOR_EVAL = cifar10_input.NUM_EXAMPLES_PER_EPOCH_FOR_EVAL
TOWER_NAME = multi_gpu.TOWER_NAME
DATA_URL = download.DATA_URL

_INITIAL = dict(globals())


def _flag(name):
    """Return the value of a flag.

    If the program has not parsed its flags yet, only this one is parsed from the command line.
    """
    # programs have replaced cifar10.FLAGS by what their parser gave
    if FLAGS is not tf.app.flags.FLAGS or FLAGS.is_parsed():
        return getattr(FLAGS, name)
    if not FLAGS[name].using_default_value:
        return FLAGS[name].value
    alone = flags.FlagValues()
    alone[name] = copy.deepcopy(FLAGS[name])
    alone(sys.argv, known_only=True)
    return alone[name].value


def _input_constant(name):
    """Return the value of a constant of both modules.

    A value that the program has set here takes precedence over that of cifar10_input.
    """
    return getattr(cifar10_input, name) if globals()[name] == _INITIAL[name] else globals()[name]


def _dtype():
    return tf.float16 if _flag('use_fp16') else tf.float32


def _activation_summary(x):
    """Summarize the activations `x`: a histogram and the sparsity, without a tower's name."""
    name = re.sub(f'{TOWER_NAME}_[0-9]*/', '', x.op.name)
    tf.summary.histogram(name + '/activations', x)
    tf.summary.scalar(name + '/sparsity', tf.nn.zero_fraction(x))


def _variable_on_cpu(name, shape, initializer):
    """Return a variable in CPU memory: float32, or float16 with --use_fp16."""
    with tf.device('/cpu:0'):
        return tf.get_variable(name, shape, _dtype(), initializer)


def _variable_with_weight_decay(name, shape, stddev, wd):
    """Return a variable from a truncated normal distribution.

    Unless `wd` is None, wd * l2_loss joins the collection 'losses'.
    """
    variable = _variable_on_cpu(
        name, shape, tf.truncated_normal_initializer(stddev=stddev, dtype=_dtype())
    )
    if wd is not None:
        tf.add_to_collection('losses', tf.multiply(tf.nn.l2_loss(variable), wd, name='weight_loss'))
    return variable


def maybe_download_and_extract():
    """Download CIFAR-10 to --data_dir, unless it is there already; see cifar10.data.download."""
    download.maybe_download_and_extract(_flag('data_dir'), DATA_URL)


def distorted_inputs(data_dir=None, batch_size=None):
    """Return batches of distorted training images; see cifar10_input.distorted_inputs.

    For None the value of the flag is used.
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

    For None the value of the flag is used.
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
    """Build the network, see cifar10.model.inference, and summaries of its activations.

    Args:
      images: a tensor, or a value convertible to one, [batch, height, width, 3].

    Returns:
      Logits, [batch, NUM_CLASSES], not softmaxed.
    """
    earlier = len(tf.get_collection(tf.GraphKeys.ACTIVATIONS))
    logits = model.inference(tf.convert_to_tensor(images), num_classes=NUM_CLASSES)
    for activations in tf.get_collection(tf.GraphKeys.ACTIVATIONS)[earlier:]:
        _activation_summary(activations)
    return logits


loss = model.loss
_add_loss_summaries = update.add_loss_summaries


def train(total_loss, global_step):
    """Return the train op, with the constants of this module; see cifar10.tutorial.update."""
    return update.train(
        total_loss,
        global_step,
        RunLength(_flag('batch_size'), NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN),
        CLASSIC._replace(
            initial_learning_rate=INITIAL_LEARNING_RATE,
            num_epochs_per_decay=NUM_EPOCHS_PER_DECAY,
            learning_rate_decay_factor=LEARNING_RATE_DECAY_FACTOR,
            moving_average_decay=MOVING_AVERAGE_DECAY,
        ),
    )
