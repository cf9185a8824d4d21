#!/usr/bin/env python3
"""Exports a trained network as a SavedModel.

TensorFlow 2 and TensorFlow Serving load the SavedModel without this package.

  cifar10_export.py --checkpoint_dir=/tmp/cifar10_train --export_dir=/tmp/cifar10_export
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program
from cifar10.system import directories


def define_flags():
    """Define the flags."""
    data_flags.define_checkpoint()
    data_flags.define_path(
        'export_dir',
        '/tmp/cifar10_export',
        'Directory of the SavedModel; each export adds a version.',
        directories.check_no_file,
    )


program.start(__name__, define_flags, data_flags.check_checkpoint_exists)

from absl import flags

from cifar10.serving import export, trained_model
from cifar10.system import signals

FLAGS = flags.FLAGS


def main():
    """Export the checkpoint that the flags choose."""
    network = trained_model.read(data_flags.chosen_checkpoint(), FLAGS.network)
    for note in network.notes:
        print(note)
    with signals.StopRequest(raises=True):
        path = export.write(network, FLAGS.export_dir, progress=print)
    print(f'Exported {network.ckpt.path} to {path}')


if __name__ == '__main__':
    program.run(main, uses_gpus=False)
