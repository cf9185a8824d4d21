#!/usr/bin/env python3
"""Classifies image files, and prints the most probable classes with their probabilities.

IMAGE is a file (JPEG, PNG, GIF, BMP or WebP, of any size), a directory, or - for the standard
input. The largest central square is scaled to 32 x 32, then cropped and standardized as in the
evaluation.

  cifar10_predict.py cat.jpg
  cifar10_predict.py --recursive --json photos > photos.json
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program

# isort: split
from absl import flags

from cifar10 import errors
from cifar10.system import directories

FLAGS = flags.FLAGS


def define_flags():
    """Define the flags."""
    data_flags.define_checkpoint()
    data_flags.define_path(
        'saved_model_dir',
        None,
        'SavedModel of cifar10_export.py, instead of a checkpoint.',
        directories.check_no_file,
    )
    flags.DEFINE_integer(
        'top_k',
        None,
        'Number of most probable classes to print. Default: 5, or all if there are fewer.',
        1,
        256,
    )
    flags.DEFINE_boolean('recursive', False, 'Also search subdirectories for images.')
    flags.DEFINE_boolean('json', False, 'Print one line of JSON per image.')


def check_flags():
    """Raise UserError if flags contradict each other."""
    if FLAGS.saved_model_dir:
        directories.check_exists(
            FLAGS.saved_model_dir,
            'export a model with cifar10_export.py, or give another --saved_model_dir',
        )
    else:
        data_flags.check_checkpoint_exists()


ARGUMENTS = program.start(__name__, define_flags, check_flags, 'IMAGE...')

from cifar10.serving import prediction, trained_model


def predictor(num_images):
    """Return the predictor that the flags choose, and the class names."""
    if FLAGS.saved_model_dir:
        return prediction.saved_model_predictor(FLAGS.saved_model_dir)
    network = trained_model.read(data_flags.chosen_checkpoint(), FLAGS.network)
    for note in network.notes:
        errors.warn(note)  # stdout has predictions only.
    return prediction.checkpoint_predictor(network, num_images), network.class_names


def main(*names):
    """Print the predictions; return 1 if a file is unusable."""
    failures = []
    paths = prediction.find_files(names, FLAGS.recursive)
    predict, class_names = predictor(len(paths))
    count = FLAGS.top_k or 5
    line = prediction.json_line if FLAGS.json else prediction.text_line
    for predictions in prediction.predict(paths, predict, class_names, count, failures):
        sys.stdout.writelines(map(line, predictions))
    return int(bool(failures))


if __name__ == '__main__':
    program.run(main, ARGUMENTS, uses_gpus=False)
