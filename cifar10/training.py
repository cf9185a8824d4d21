"""The one session loop, and what comes before it: the training directory and the plan."""
import glob
import json
import os
import signal
import time
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import checkpoint, dataset, hooks, optimizer
from cifar10.errors import UserError

_RECORD = 'run.json'


class Schedule(NamedTuple):
    """How long a run goes on and what it leaves when; all in steps."""
    max_steps: int = 1000000
    log_frequency: int = 10
    summary_steps: int = 100
    checkpoint_steps: int = 1000


def prepare_directory(train_dir, fresh, hparams, num_towers, data_dir):
    """Makes the training directory ready for a new run or for going on with the one in it.

    Args:
      train_dir: the directory.
      fresh: whether to move a run that is in it aside.
      hparams: an HParams; recorded in the directory together with the number of towers and the class names.
      num_towers: how many towers take a batch in each step.
      data_dir: parent of cifar-10-batches-bin.

    Returns:
      The Checkpoint from which training goes on, or None.

    Raises:
      UserError: the run in the directory is on other data, or its checkpoint is missing or damaged.
    """
    if os.path.isdir(train_dir) and fresh:
        _move_aside(train_dir)
    os.makedirs(train_dir, exist_ok=True)
    path = checkpoint.latest(train_dir)
    record = dict(hparams._asdict(), num_towers=num_towers, class_names=dataset.class_names(data_dir))
    record_path = os.path.join(train_dir, _RECORD)
    if path and os.path.exists(record_path):
        _compare(train_dir, record_path, record)
    resumed = checkpoint.read(path) if path else None
    with open(record_path + '.new', 'w') as new:
        json.dump(record, new, indent=1)
    os.replace(record_path + '.new', record_path)
    return resumed


def _move_aside(train_dir):
    if not any(glob.glob(os.path.join(glob.escape(train_dir), pattern)) for pattern in ('checkpoint', 'events.*', _RECORD)):
        return
    aside = '%s.%s' % (os.path.abspath(train_dir), time.strftime('%Y%m%d-%H%M%S'))
    os.rename(train_dir, aside)
    print('Moved the run in %s to %s' % (train_dir, aside), flush=True)


def _compare(train_dir, record_path, record):
    """Refuses to go on with a run on other data; says which numbers have changed."""
    try:
        with open(record_path) as old:
            old = json.load(old)
        was = {name: old[name] for name in record}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError('%s is damaged (%r): delete it to go on without a check' % (record_path, error))
    if was['class_names'] != record['class_names']:
        raise UserError('The run in %s is on a data set with other classes (%s): give another --train_dir, or --fresh to move '
                        'it aside' % (train_dir, ', '.join(was['class_names'] or ['unknown'])))
    changed = ['%s was %s, is %s' % (name, was[name], record[name]) for name in record if was[name] != record[name]]
    if changed:
        print('The run in %s goes on with other numbers: %s. Its steps so far count as if taken with the new ones'
              % (train_dir, '; '.join(changed)), flush=True)


def print_plan(data_dir, devices, num_examples, hparams, resumed):
    """Prints what is about to be trained on what, and when the learning rate will fall.

    Args:
      data_dir: parent of cifar-10-batches-bin.
      devices: a device name a tower.
      num_examples: examples in the training set.
      hparams: an HParams.
      resumed: the Checkpoint from which training goes on, or None.
    """
    examples_per_step = hparams.batch_size * len(devices)
    decay = optimizer.examples_per_decay(num_examples, hparams)
    decays = (resumed.step if resumed else 0) * examples_per_step // decay
    rate = hparams.initial_learning_rate * hparams.learning_rate_decay_factor ** decays
    print('\n'.join([
        'Data: %d examples of %s in %s' % (num_examples, ', '.join(dataset.class_names(data_dir) or ['unnamed classes']), data_dir),
        'Devices: %s' % ', '.join(devices),
        'Batch: %d examples a tower, %d a step' % (hparams.batch_size, examples_per_step),
        'Epoch: %d examples, %.1f steps' % (num_examples, num_examples / examples_per_step),
        'Learning rate: %g, next %g from epoch %g on (step %d)' % (
            rate, rate * hparams.learning_rate_decay_factor, (decays + 1) * hparams.num_epochs_per_decay,
            -(-(decays + 1) * decay // examples_per_step))]), flush=True)


class _Signals:
    """While entered, SIGINT and SIGTERM only set `received`; a second one acts as ever."""
    received = None

    def __enter__(self):
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _receive(self, number, frame):
        self.received = signal.Signals(number).name
        self.__exit__()

    def __exit__(self, *unused_error):
        for number, handler in self._before.items():
            signal.signal(number, handler)


def run(train_op, losses, learning_rate, summary_op, saver, summary_writer, train_dir, resumed, schedule, examples_per_step,
        config):
    """Trains until `schedule.max_steps`, SIGINT or SIGTERM, and saves a checkpoint at the end.

    Args:
      train_op: makes one update and counts it in the global step.
      losses: a list with each tower's loss.
      learning_rate: a scalar tensor.
      summary_op: a string scalar tensor, run together with the train op.
      saver: a tf.train.Saver of all variables.
      summary_writer: a tf.summary.FileWriter; closed at the end.
      train_dir: directory of the checkpoints.
      resumed: the Checkpoint from which to go on, or None; the latest one in `train_dir`.
      schedule: a Schedule.
      examples_per_step: examples that all towers together consume in a step.
      config: a tf.ConfigProto.

    Raises:
      UserError: the loss or a variable is not finite, or the checkpoint is not of this network.
    """
    if resumed:
        checkpoint.check_fits(resumed, {variable.op.name: variable for variable in tf.global_variables()})
        print('Going on from %s, step %d' % (resumed.path, resumed.step), flush=True)
        if resumed.step >= schedule.max_steps:
            print('Nothing to do: --max_steps is %d' % schedule.max_steps, flush=True)
            return
    with tf.device('/cpu:0'), tf.control_dependencies([train_op]):
        step = tf.identity(tf.train.get_global_step(), name='step')
    losses = tf.stack(losses)
    finite = hooks.FiniteHook(step, losses, learning_rate, train_dir)
    with summary_writer, _Signals() as signals:
        all_hooks = [
            tf.train.StopAtStepHook(last_step=schedule.max_steps),
            hooks.FillHook(lambda: signals.received),
            finite,
            hooks.LogHook(step, tf.reduce_mean(losses), examples_per_step, schedule.log_frequency),
            hooks.SummaryHook(step, summary_op, summary_writer, examples_per_step, schedule.summary_steps),
            hooks.CheckpointHook(step, saver, train_dir, schedule.checkpoint_steps, finite.check_variables)]
        with tf.train.MonitoredTrainingSession(
                checkpoint_dir=train_dir, scaffold=tf.train.Scaffold(saver=saver), hooks=all_hooks, config=config,
                save_checkpoint_secs=None, save_checkpoint_steps=None, save_summaries_secs=None, save_summaries_steps=None,
                log_step_count_steps=None) as session:
            while not session.should_stop() and not signals.received:
                session.run(train_op)
            if signals.received:
                print('%s: stopping' % signals.received, flush=True)
