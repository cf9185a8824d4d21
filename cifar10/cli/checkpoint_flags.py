"""The flags of the checkpoint that is evaluated, used or exported."""

import os

from absl import flags

from cifar10 import directories, files
from cifar10.cli import data_flags
from cifar10.errors import UserError
from cifar10.hparams import NUM_VIEWS

FLAGS = flags.FLAGS


def define():
    """Defines --checkpoint_dir and --checkpoint."""
    data_flags.define_directory(
        'checkpoint_dir',
        '/tmp/cifar10_train',
        'Directory of the checkpoints.',
        directories.check_for_checkpoints,
    )
    flags.DEFINE_string(
        'checkpoint',
        'latest',
        'The checkpoint: latest, best (which training with --keep_best keeps), or a path.',
    )
    data_flags.validate('checkpoint', _check)


def check_exists():
    """Raises UserError unless --checkpoint_dir is a directory, if the checkpoint is looked for
    there."""
    if FLAGS.checkpoint in ('latest', 'best'):
        directories.check_exists(
            FLAGS.checkpoint_dir, 'train first, or give another --checkpoint_dir'
        )


def define_views():
    """Defines --views."""
    flags.DEFINE_enum(
        'views',
        '1',
        [str(number) for number in NUM_VIEWS],
        'Views per image, whose class probabilities are averaged: 1 is the centre, 2 are the centre and its mirror '
        'image, 10 are five crops and their mirror images.',
    )


def define_saved_model():
    """Defines --saved_model."""
    flags.DEFINE_string(
        'saved_model', None, 'A model that cifar10_export.py has written, in place of a checkpoint.'
    )
    flags.register_validator(
        'saved_model', lambda path: path != '', 'the name of a directory is missing'
    )
    data_flags.validate('saved_model', lambda path: path is None or files.check_name(path))


def _check(choice):
    if not choice:
        raise UserError('a checkpoint is missing: give latest, best or a path')
    files.check_name(choice)
    directories.check_no_pattern(os.path.abspath(choice))
