"""A checkpoint made into a file for TensorFlow Lite."""
from absl import logging
import tensorflow.compat.v1 as tf

from cifar10 import files
from cifar10.data import dataset
from cifar10.serving import exporting


def write(trained, path):
    """Writes the network, with the weights in the file, whole or not at all.

    Its input `images` is float32 [n, 32, 32, 3] from 0 to 255; n is 1 unless the interpreter resizes it. Its output, `probabilities`,
    is float32 [n, classes].

    Args:
      trained: a Trained.
      path: the file.

    Raises:
      UserError: it cannot be written, or the checkpoint does not fit the network.
    """
    logging.set_verbosity(logging.ERROR)  # the converter tells what it is going to do
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={'GPU': 0})) as session:
        images = tf.placeholder(tf.float32, [None, dataset.HEIGHT, dataset.WIDTH, dataset.DEPTH], 'images')
        with trained.constants():
            probabilities = exporting.standard_probabilities(tf.transpose(images, [0, 3, 1, 2]), len(trained.class_names))
        content = tf.lite.TFLiteConverter.from_session(session, [images], [tf.identity(probabilities, 'probabilities')]).convert()
    files.write_whole(path, content, 'name another file with --tflite')
