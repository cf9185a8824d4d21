#!/usr/bin/env python3
"""Evaluates the latest checkpoint of a training run, then each time there is a newer one, or only once with --run_once.

Scores the moving averages of the weights on every example exactly once. Computes on the CPU, so that it takes nothing from
a trainer on the GPUs.

  cifar10_eval.py --run_once
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

from absl import flags

from cifar10 import evaluation, multi_gpu, views
from cifar10.cli import program as command_line
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.errors import UserError

FLAGS = flags.FLAGS


def evaluate():
    """Evaluates what the flags name."""
    data_dir = command_line.prepare_data()
    num_present = dataset.verify((dataset.test_files if FLAGS.eval_data == 'test' else dataset.train_files)(data_dir))
    if FLAGS.num_examples is not None and FLAGS.num_examples > num_present:
        raise UserError('--num_examples=%d is more than the %d examples there are: leave it out to score all'
                        % (FLAGS.num_examples, num_present))
    device, = multi_gpu.tower_devices(1) if FLAGS.use_gpu else ['/cpu:0']
    evaluator = evaluation.Evaluator(
        data_dir, FLAGS.eval_data, FLAGS.num_examples, int(FLAGS.views), device, multi_gpu.session_config([device]))
    if FLAGS.run_once:
        checkpoints = [checkpoint.read_latest(FLAGS.checkpoint_dir)]
        if checkpoints == [None]:
            raise UserError('There is no checkpoint in %s: train first, or give another --checkpoint_dir' % FLAGS.checkpoint_dir)
    else:
        checkpoints = evaluation.new_checkpoints(FLAGS.checkpoint_dir, FLAGS.eval_interval_secs, FLAGS.timeout_secs)
    evaluation.evaluate(evaluator, checkpoints, FLAGS.eval_dir)


if __name__ == '__main__':
    command_line.define_data_flags()
    command_line.define_directory('eval_dir', '/tmp/cifar10_eval',
                                  'Directory of the summaries; give each run and each --eval_data its own.')
    command_line.define_directory('checkpoint_dir', '/tmp/cifar10_train', 'Directory of the checkpoints.')
    flags.DEFINE_enum('eval_data', 'test', ['test', 'train_eval'], 'Score the test images or the training images.')
    flags.DEFINE_enum('views', '1', [str(number) for number in views.NUM_VIEWS],
                      'Views of an image whose probabilities are averaged: its centre; that and its mirror image; five crops and '
                      'their mirror images.')
    flags.DEFINE_integer('num_examples', None, 'Score the first so many; all by default.', lower_bound=1)
    flags.DEFINE_integer('eval_interval_secs', 300, 'Seconds between two looks for a new checkpoint.', lower_bound=1)
    flags.DEFINE_integer('timeout_secs', None, 'Stop after so many seconds without a new checkpoint; never by default.',
                         lower_bound=0)
    flags.DEFINE_boolean('run_once', False, 'Evaluate the latest checkpoint and stop.')
    flags.DEFINE_boolean('use_gpu', False, 'Compute on a GPU.')
    flags.adopt_module_key_flags(command_line)
    command_line.run(evaluate)
