"""The precision of a checkpoint: every example is scored exactly once."""
import datetime
import os
from typing import Dict, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import directories, input as cifar10_input, summaries, tags, views
from cifar10.data import verification
from cifar10.runs import checkpoint, machine, run_record, watch


class Result(NamedTuple):
    """What an evaluation has found."""
    step: int
    num_correct: int
    num_examples: int
    num_views: int
    losses: Dict[str, float]  # by summary tag; the cross entropy is the mean over the examples, without label smoothing

    @property
    def precision(self):
        """The share of the examples that are classified correctly."""
        return self.num_correct / self.num_examples


class Evaluator:
    """Builds the evaluation graph once and scores any number of checkpoints with it."""

    def __init__(self, records, device='/cpu:0', num_examples=None, num_views=1):
        """Builds the graph.

        Args:
          records: the Records that are scored, like those of a DataSet for the test.
          device: the device to compute on.
          num_examples: score only this many examples, the first ones; None scores all.
          num_views: the number of views per image, see views.crop_and_mirror.

        Raises:
          UserError: a file is missing or malformed.
        """
        self._watch = watch.Watch(records)
        num_present = verification.verify(records)
        self._class_names = records.class_names
        self._num_examples = num_present if num_examples is None else min(num_examples, num_present)
        self._num_views = num_views
        self._config = machine.session_config([device], machine.choose_threads([device], cifar10_input.BATCH_SIZE))
        num_slices = machine.num_slices([device], cifar10_input.BATCH_SIZE)
        self.graph = tf.Graph()
        with self.graph.as_default():
            labels, images = cifar10_input.undistorted_records(records, num_epochs=1)
            with tf.device(device):
                # With a weight decay of 1, 'losses' holds l2_loss itself; `evaluate` multiplies it by that of the run.
                log_probabilities = views.log_probabilities(
                    images, num_views, records.num_classes, num_slices, fc_weight_decay=1.0)
                with tf.name_scope('per_example'):
                    self._per_example = {
                        'correct': tf.equal(tf.argmax(log_probabilities, 1, output_type=tf.int32), labels),
                        'cross_entropy': tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=log_probabilities)}
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
          UserError: the checkpoint was trained on other classes, does not fit the network or is not finite, the record is damaged, or
            a file of the examples has changed since the Evaluator was made.
        """
        self._watch.check()
        train_dir = os.path.dirname(restored.path)
        run_record.check_classes(train_dir, self._class_names)
        decay = run_record.recorded_hparams(train_dir).fc_weight_decay
        variables = self._restored_variables(restored)
        with tf.Session(graph=self.graph, config=self._config) as session:
            for name, variable in variables.items():
                variable.load(restored.values[name], session)
            correct, cross_entropy = self._run_over_examples(session)
            l2_losses = session.run(self._l2_losses)
        losses = {tag: decay * float(value) for tag, value in l2_losses.items()}
        losses[tags.CROSS_ENTROPY] = float(cross_entropy.mean())
        losses[tags.TOTAL_LOSS] = sum(losses.values())
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


def describe(result):
    """The line that tells the precision of a Result."""
    several_views = '%d views, ' % result.num_views if result.num_views > 1 else ''
    return '%s: precision @ 1 = %.3f (%d of %d, %sstep %d)' % (
        datetime.datetime.now().isoformat(' ', 'microseconds'), result.precision, result.num_correct, result.num_examples,
        several_views, result.step)


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
            print(describe(result), flush=True)
            values = dict(result.losses, **{tags.PRECISION: result.precision})
            write(tf.Summary(value=[tf.Summary.Value(tag=tags.with_views(tag, result.num_views), simple_value=value)
                                    for tag, value in sorted(values.items())]), result.step)
