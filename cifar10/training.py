"""The one session loop, and the plan that is printed before it."""
import signal
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import hooks, optimizer, summaries
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.hparams import CLASSIC, HParams


class Schedule(NamedTuple):
    """How long a run goes on and what it leaves when; all in steps."""
    max_steps: int = 1000000
    log_frequency: int = 10
    summary_steps: int = 100
    checkpoint_steps: int = 1000


def print_plan(data_dir, devices, threads, num_examples, hparams, max_steps, resumed):
    """Prints what is about to be trained on what, and how the learning rate will go.

    Args:
      data_dir: parent of cifar-10-batches-bin.
      devices: a device name a tower.
      threads: a Threads.
      num_examples: examples in the training set.
      hparams: an HParams.
      max_steps: the run ends there, if not before.
      resumed: the Checkpoint from which training goes on, or None.
    """
    examples_per_step = hparams.batch_size * len(devices)
    last_step = min(max_steps, optimizer.num_steps(examples_per_step, num_examples, hparams))
    print('\n'.join([
        'Data: %d examples of %s in %s' % (num_examples, ', '.join(dataset.class_names(data_dir) or ['unnamed classes']), data_dir),
        'Devices: %s' % ', '.join(devices),
        'Threads: %s within an operation, %s for operations side by side, %d for the input; slices a batch: %d' % (
            threads.intra_op or 'all', threads.inter_op or 'all', threads.input, threads.slices),
        'Batch: %d examples a tower, %d a step' % (hparams.batch_size, examples_per_step),
        'Epoch: %d examples, %.1f steps' % (num_examples, num_examples / examples_per_step)]
        + _hparams_lines(hparams, examples_per_step)
        + ['Learning rate: ' + optimizer.describe_learning_rate(
            resumed.step if resumed else 0, examples_per_step, num_examples, hparams),
           'End: step %d, epoch %.1f' % (last_step, last_step * examples_per_step / num_examples)]), flush=True)


def _hparams_lines(hparams, examples_per_step):
    """Lines on the recipe, what differs from the classic one, and the scaling of the learning rates."""
    others = []
    for name in HParams._fields[1:]:
        value, classic = getattr(hparams, name), getattr(CLASSIC, name) if CLASSIC.has_effect(name) else None
        if hparams.has_effect(name) and value != classic:
            others.append('%s %s' % (name, value) + ('' if classic is None else ' (%s)' % classic))
    lines = ['Recipe: %s, %s' % (hparams.recipe, 'other than classic in ' + ', '.join(others) if others else 'the books\' numbers')]
    factor = optimizer.batch_factor(examples_per_step, hparams)
    if factor != 1 or hparams.lr_scaling != 'none':
        lines.append('Learning rates: %s for %g times the examples a step of the recipe' % (
            'times %g' % factor if hparams.lr_scaling == 'linear' else 'as they are (--lr_scaling=none)', factor))
    return lines


class _Signals:
    """While entered, SIGINT and SIGTERM only set `received`; a second one acts as ever."""
    received = None

    def __enter__(self):
        if getattr(signal.getsignal(signal.SIGINT), 'received', False):  # it was lost, see command_line
            raise KeyboardInterrupt
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _receive(self, number, frame):
        self.received = signal.Signals(number).name
        self.__exit__()

    def __exit__(self, *unused_error):
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _first_step(resumed):
    """The number of updates so far; checks that the checkpoint, if there is one, fits the graph."""
    if not resumed:
        return 0
    checkpoint.check_fits(resumed, {variable.op.name: variable for variable in tf.global_variables()})
    print('Going on from %s, step %d' % (resumed.path, resumed.step), flush=True)
    return resumed.step


def run(train_op, losses, tower_grads, learning_rate, summary_op, saver, run_directory, schedule, examples_per_step,
        examples_per_epoch, config):
    """Trains until `schedule.max_steps`, SIGINT or SIGTERM, and saves a checkpoint at the end.

    Args:
      train_op: makes one update and counts it in the global step.
      losses: a list with each tower's loss.
      tower_grads: a list with each tower's list of (gradient, variable).
      learning_rate: a scalar tensor.
      summary_op: a string scalar tensor, run together with the train op.
      saver: a tf.train.Saver of all variables.
      run_directory: a RunDirectory, from whose checkpoint training goes on.
      schedule: a Schedule.
      examples_per_step: examples that all towers together consume in a step.
      examples_per_epoch: examples in the training set.
      config: a tf.ConfigProto.

    Raises:
      UserError: a loss, a gradient or a variable is not finite, the checkpoint does not fit, or none can be saved.
    """
    first_step = _first_step(run_directory.resumed)
    if first_step >= schedule.max_steps:
        print('Nothing to do: the run ends at step %d' % schedule.max_steps, flush=True)
        return
    run_directory.write_record()
    with tf.device('/cpu:0'):
        with tf.control_dependencies([train_op]):
            step = tf.identity(tf.train.get_global_step(), name='step')
        loss = tf.divide(tf.add_n(losses), len(losses), name='loss')
    finite = hooks.FiniteHook(step, losses, tower_grads, learning_rate, run_directory.path)
    with summaries.writer(run_directory.path, first_step) as write_summary, _Signals() as signals:
        all_hooks = [
            tf.train.StopAtStepHook(last_step=schedule.max_steps),
            hooks.FillHook(lambda: signals.received),
            finite,
            hooks.LogHook(step, loss, examples_per_step, schedule.log_frequency),
            hooks.SummaryHook(step, summary_op, write_summary, examples_per_step, examples_per_epoch,
                              schedule.summary_steps),
            hooks.CheckpointHook(step, saver, run_directory.path, schedule.checkpoint_steps, finite.check_variables)]
        with tf.train.MonitoredTrainingSession(
                checkpoint_dir=run_directory.path, scaffold=tf.train.Scaffold(saver=saver), hooks=all_hooks, config=config,
                save_checkpoint_secs=None, save_checkpoint_steps=None, save_summaries_secs=None, save_summaries_steps=None,
                log_step_count_steps=None) as session:
            while not session.should_stop() and not signals.received:
                session.run(train_op)
            if signals.received:
                print('%s: stopping' % signals.received, flush=True)
