"""Export of a checkpoint to a SavedModel.

TensorFlow 2 and TensorFlow Serving load the SavedModel without this package.
"""

import os

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, distortions
from cifar10.config import DEPTH, HEIGHT, WIDTH
from cifar10.system import directories, files

CLASS_NAMES_ASSET = ('assets.extra', 'class_names.txt')  # one name per line, in label order
UINT8_SIGNATURE = 'predict_images_uint8'


def list_versions(export_dir):
    """Return the version numbers in a directory."""
    names = os.listdir(export_dir) if os.path.isdir(export_dir) else []
    return [int(name) for name in names if name.isdecimal() and str(int(name)) == name]


def write(trained_model, export_dir, progress):
    """Write a SavedModel to EXPORT_DIR/VERSION atomically.

    Signatures and inputs:
      predict_images, serving_default: `images`, float32 [n, 32, 32, 3], 0 to 255.
      predict_images_uint8: `images`, uint8 [n, 32, 32, 3].
    Outputs: most probable class (`classes`, int64 [n]), its name (`names`, string [n]) and
    `probabilities`, float32 [n, classes].

    Args:
      trained_model: a TrainedModel.
      export_dir: directory of the versions; created if missing.
      progress: see directories.lock.

    Returns:
      The path of the model.

    Raises:
      UserError: the directory cannot be written, or the checkpoint does not fit the network.
    """
    with directories.lock(export_dir, progress=progress):
        path = os.path.join(export_dir, str(max(list_versions(export_dir), default=0) + 1))
        # TensorFlow Serving ignores the temporary directory: its name is not a number.
        with directories.atomic_directory(path) as directory:
            _save(trained_model, directory)
    return path


def _save(trained_model, directory):
    with tf.Graph().as_default(), tf.Session() as session:
        with trained_model.constants_scope():
            signatures = _build_signatures(trained_model)
        builder = tf.saved_model.Builder(directory)
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.SERVING],
            signatures,
            clear_devices=True,
            strip_default_attrs=True,
        )
        builder.save()
    names_file = os.path.join(directory, *CLASS_NAMES_ASSET)
    os.mkdir(os.path.dirname(names_file))
    files.atomic_write(
        names_file, ''.join(name + '\n' for name in trained_model.class_names), 'make room there'
    )


def _build_signatures(trained_model):
    """Build the graph; return a dict from names to signatures."""
    size = [None, HEIGHT, WIDTH, DEPTH]
    images = tf.placeholder(tf.float32, size, 'images')
    uint8_images = tf.placeholder(tf.uint8, size, 'uint8_images')
    rounded = tf.round(tf.clip_by_value(images, 0, 255))
    images_signature = _build_signature(images, rounded, trained_model)
    return {
        'serving_default': images_signature,
        'predict_images': images_signature,
        UINT8_SIGNATURE: _build_signature(uint8_images, uint8_images, trained_model),
    }


def _build_signature(images, pixels, trained_model):
    padded = cpu_kernels.pad_batch(pixels, 1)
    crops = distortions.crop(tf.transpose(padded, [0, 3, 1, 2]))
    with cpu_kernels.portable():
        logits = trained_model.network.inference(crops)
    probabilities = tf.nn.softmax(logits)[: tf.shape(images)[0]]
    classes = tf.argmax(probabilities, 1)
    outputs = {
        'classes': classes,
        'names': tf.gather(tf.constant(trained_model.class_names), classes),
        'probabilities': probabilities,
    }
    return tf.saved_model.predict_signature_def({'images': images}, outputs)
