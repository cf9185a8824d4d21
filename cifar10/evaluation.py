"""The precision of a checkpoint: every example is scored exactly once."""
import datetime
import os
import time
from typing import Dict, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import directories, input as cifar10_input, summaries, views
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files, run_record, watch

PRECISION = 'Precision @ 1'


class Result(NamedTuple):
    """What an evaluation has found."""
    step: int
    num_correct: int
    num_examples: int
    num_views: int
    losses: Dict[str, float]  # by summary tag; the cross entropy is the mean over the examples, without label smoothing


class Evaluator:
    """Builds the evaluation graph once and scores any number of checkpoints with it."""

    def __init__(self, paths, num_examples, num_views, device, config):
        """Builds the graph.

        Args:
          paths: the files of the examples, see dataset.test_files.
          num_examples: score only this many examples, the first ones; None scores all.
          num_views: the number of views per image, see views.crop_and_mirror.
          device: the device to compute on.
          config: a tf.ConfigProto.

        Raises:
          UserError: a file is missing or malformed.
        """
        self._watch = watch.Watch(paths)
        num_present = dataset.verify(paths)
        self._num_examples = num_present if num_examples is None else min(num_examples, num_present)
        self._num_views = num_views
        self._config = config
        self.graph = tf.Graph()
        with self.graph.as_default():
            labels, images = cifar10_input.undistorted_records(paths, num_epochs=1)
            with tf.device(device):
                # With a weight decay of 1, 'losses' holds l2_loss itself; `evaluate` multiplies it by that of the run.
                log_probabilities = views.log_probabilities(images, num_views, fc_weight_decay=1.0)
                self._per_example = {
                    'correct': tf.equal(tf.argmax(log_probabilities, 1, output_type=tf.int32), labels),
                    'cross_entropy': -tf.gather(log_probabilities, labels, axis=1, batch_dims=1)}
            self._l2_losses = {'losses/' + part.op.name: part for part in tf.get_collection('losses')}
            self._variables = tf.trainable_variables()

    def evaluate(self, restored):
        """Scores the moving averages in a checkpoint; if it has none, says so and scores its raw weights.

        The weight decay in the losses is that of the run, which the checkpoint's directory records.

        Args:
          restored: a Checkpoint.

        Returns:
          A Result.

        Raises:
          UserError: the checkpoint does not fit the network or is not finite, the record is damaged, or a file of the examples has
            changed since the Evaluator was made.
        """
        self._watch.check()
        decay = run_record.recorded_hparams(os.path.dirname(restored.path)).fc_weight_decay
        variables = self._restored_variables(restored)
        with tf.Session(graph=self.graph, config=self._config) as session:
            for name, variable in variables.items():
                variable.load(restored.values[name], session)
            correct, cross_entropy = self._run_over_examples(session)
            l2_losses = session.run(self._l2_losses)
        losses = {tag: decay * float(value) for tag, value in l2_losses.items()}
        losses['losses/cross_entropy'] = float(cross_entropy.mean())
        losses['total_loss'] = sum(losses.values())
        return Result(restored.step, int(correct.sum()), len(correct), self._num_views, losses)

    def _restored_variables(self, restored):
        """A dict from names in the checkpoint to the variables that take these values."""
        averages = {variable.op.name + '/ExponentialMovingAverage': variable for variable in self._variables}
        raw = {variable.op.name: variable for variable in self._variables}
        variables = averages if any(name in restored.values for name in averages) else raw
        checkpoint.check_fits(restored, variables)
        if variables is raw:
            print('%s has no moving averages: evaluating the weights themselves' % restored.path, flush=True)
        return variables

    def _run_over_examples(self, session):
        """For each example, in order: whether it is classified correctly, and its cross entropy."""
        correct, cross_entropy = [], []
        missing = self._num_examples
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        self._watch.start(coord)
        with self._watch.explaining():
            try:
                while missing > 0:
                    batch = session.run(self._per_example)
                    correct.append(batch['correct'])
                    cross_entropy.append(batch['cross_entropy'])
                    missing -= len(batch['correct'])
                coord.request_stop()
                coord.join(threads)  # raises what went wrong, but not the OutOfRangeError that ends the data
            except tf.errors.OpError:
                coord.raise_requested_exception()  # of the thread whose end was the reason
                raise
            finally:
                coord.request_stop()
        self._watch.check()
        return np.concatenate(correct)[:self._num_examples], np.concatenate(cross_entropy)[:self._num_examples]


def new_checkpoints(checkpoint_dir, interval_secs, timeout_secs=None):
    """Yields each new Checkpoint; looks for a newer one every `interval_secs` seconds.

    Ends after `timeout_secs` seconds without a new one; never if that is None.

    Raises:
      UserError: there are checkpoints, but no intact one; or the directory is gone, in which there was one.
    """
    seen, last, last_time = None, None, time.monotonic()
    while True:
        stamp = checkpoint_files.stamp(checkpoint_dir)
        restored = checkpoint.read_latest(checkpoint_dir) if stamp != seen else None
        seen = stamp
        # The newest may be damaged, and the one before it known.
        if restored and (restored.path, checkpoint_files.saved_time(restored.path)) != last:
            last = restored.path, checkpoint_files.saved_time(restored.path)
            yield restored
            last_time = time.monotonic()
            continue
        if last is None:
            print('Waiting for a checkpoint in %s' % checkpoint_dir, flush=True)
        else:
            _check_present(checkpoint_dir)
        waited = time.monotonic() - last_time
        if timeout_secs is not None and waited >= timeout_secs:
            print('No new checkpoint in %s for %d seconds' % (checkpoint_dir, waited), flush=True)
            return
        time.sleep(interval_secs if timeout_secs is None else min(interval_secs, timeout_secs - waited))


def _check_present(checkpoint_dir):
    if not os.path.isdir(checkpoint_dir):
        time.sleep(1)  # a trainer with --fresh moves it aside and makes it again
        if not os.path.isdir(checkpoint_dir):
            raise UserError('%s has been moved or removed: put it back, or give another directory, and start again' % checkpoint_dir)


def tag_with_views(tag, num_views):
    """The summary tag of an evaluation with this many views, so that several evaluations may share a directory."""
    return tag if num_views == 1 else '%s, %d views' % (tag, num_views)


def evaluate(evaluator, checkpoints, eval_dir):
    """Evaluates checkpoints; prints the precision of each and writes it and the losses for TensorBoard.

    Args:
      evaluator: an Evaluator.
      checkpoints: an iterable of Checkpoint.
      eval_dir: directory of the summaries.

    Raises:
      UserError: see Evaluator.evaluate.
    """
    directories.make(eval_dir)
    with evaluator.graph.as_default(), summaries.writer(eval_dir) as write:
        for restored in checkpoints:
            result = evaluator.evaluate(restored)
            precision = result.num_correct / result.num_examples
            several_views = '%d views, ' % result.num_views if result.num_views > 1 else ''
            print('%s: precision @ 1 = %.3f (%d of %d, %sstep %d)' % (
                datetime.datetime.now().isoformat(' ', 'microseconds'), precision, result.num_correct, result.num_examples,
                several_views, result.step), flush=True)
            values = dict(result.losses, **{PRECISION: precision})
            write(tf.Summary(value=[tf.Summary.Value(tag=tag_with_views(tag, result.num_views), simple_value=value)
                                    for tag, value in sorted(values.items())]), result.step)
