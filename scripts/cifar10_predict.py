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

FLAGS = flags.FLAGS


def define_flags():
    """Define the flags."""
    data_flags.define_checkpoint()
    flags.DEFINE_integer('top_k', 5, 'Number of most probable classes to print.', 1, 256)
    flags.DEFINE_boolean('recursive', False, 'Also search subdirectories for images.')
    flags.DEFINE_boolean('json', False, 'Print one line of JSON per image.')


ARGUMENTS = program.start(__name__, define_flags, data_flags.check_checkpoint_exists, 'IMAGE...')

from cifar10.serving import prediction, trained_model


def main(*arguments):
    """Print the predictions; return 1 if a file is unusable."""
    failures = []
    paths = prediction.find_files(arguments, FLAGS.recursive)
    network = trained_model.read(data_flags.chosen_checkpoint(), FLAGS.network)
    for note in network.notes:
        errors.warn(note)  # stdout has predictions only.
    predictor = prediction.checkpoint_predictor(network, len(paths))
    names, count = network.class_names, FLAGS.top_k
    line = prediction.json_line if FLAGS.json else prediction.text_line
    for predictions in prediction.predict(paths, predictor, names, count, failures):
        sys.stdout.writelines(map(line, predictions))
    return int(bool(failures))


if __name__ == '__main__':
    program.run(main, ARGUMENTS, uses_gpus=False)
