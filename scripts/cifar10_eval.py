#!/usr/bin/env python3
"""Evaluates the latest checkpoint of a run, and newer ones until the run ends.

--run_once evaluates only the latest checkpoint. The evaluation uses the moving averages of the
weights, and every example exactly once. It runs on the CPU by default, so that a trainer can use
all GPUs.

  cifar10_eval.py --run_once
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program

# isort: split
from absl import flags

from cifar10.errors import UserError
from cifar10.report import figures, text_report
from cifar10.system import directories, files

FLAGS = flags.FLAGS


def define_flags():
    """Define the flags."""
    data_flags.define()
    data_flags.define_path(
        'eval_dir',
        '/tmp/cifar10_eval',
        'Directory of the summaries, a different one for each run and each --eval_data.',
        directories.check_no_file,
    )
    flags.DEFINE_enum(
        'eval_data',
        'test',
        ['test', 'train_eval'],
        'Images: test, or train_eval for the training images without distortions.',
    )
    flags.DEFINE_integer(
        'top_k',
        None,
        'Also print precision @ k: the fraction of images whose class is among the k most probable ones.',
        1,
        256,
    )
    data_flags.define_path(
        'predictions_file', None, 'CSV file for the class probabilities of each example.'
    )
    data_flags.define_path(
        'figures_dir',
        None,
        'Directory for the figures, as PNG and SVG; needs matplotlib.',
        directories.check_no_file,
    )
    flags.DEFINE_integer(
        'num_examples', None, 'Evaluate only the first N examples. Default: all.', 1
    )
    flags.DEFINE_integer(
        'eval_interval_secs',
        300,
        'Minimum seconds between two evaluations. The last checkpoint of a run does not wait.',
        1,
        365 * 86400,
    )
    flags.DEFINE_integer(
        'timeout_secs',
        None,
        'Stop after this many seconds without a new checkpoint. Default: stop only at the end of the run.',
        0,
        365 * 86400,
    )
    flags.DEFINE_boolean('run_once', False, 'Evaluate the latest checkpoint and stop.')
    data_flags.define_checkpoint()
    flags.DEFINE_boolean('use_gpu', False, 'Evaluate on a GPU instead of the CPU.')


def check_flags():
    """Raise UserError if flags contradict each other."""
    if FLAGS.run_once or FLAGS.checkpoint != 'latest':
        data_flags.check_checkpoint_exists()
    data_flags.check_classes_of_run(data_flags.directory_of_checkpoint())
    if FLAGS.figures_dir and not figures.is_available():
        raise UserError('--figures_dir needs matplotlib: pip install matplotlib')


program.start(__name__, define_flags, check_flags)

from cifar10 import evaluation
from cifar10.cli import training_job
from cifar10.runs import checkpoint


def evaluator():
    """Prepare the data set; return the Evaluator that the flags select."""
    found = data_flags.dataset_from_flags()
    split = found.test if FLAGS.eval_data == 'test' else found.train
    (device,) = training_job.find_devices(1) if FLAGS.use_gpu else ['/cpu:0']
    return evaluation.Evaluator(split, device, FLAGS.num_examples, FLAGS.network)


def checkpoints():
    """Return an iterable of the checkpoints that the flags choose."""
    if FLAGS.checkpoint == 'latest' and not FLAGS.run_once:
        return evaluation.checkpoints_iterator(
            FLAGS.checkpoint_dir, FLAGS.eval_interval_secs, FLAGS.timeout_secs
        )
    return [checkpoint.read_choice(data_flags.chosen_checkpoint())]


def main():
    """Evaluate the checkpoints that the flags choose."""
    if FLAGS.predictions_file:
        files.check_writable(FLAGS.predictions_file)
    if FLAGS.figures_dir:
        directories.make(FLAGS.figures_dir)
    result = evaluation.evaluate_checkpoints(
        evaluator(), checkpoints(), FLAGS.eval_dir, FLAGS.top_k
    )
    if result and FLAGS.predictions_file:
        content = text_report.predictions_csv(result)
        files.atomic_write(FLAGS.predictions_file, content, 'name another file')
    if result and FLAGS.figures_dir:
        figures.write(result, FLAGS.figures_dir)


if __name__ == '__main__':
    program.run(main, uses_gpus=FLAGS.use_gpu)
