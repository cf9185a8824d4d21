"""The precision of a checkpoint: every example is scored exactly once."""

import datetime
import os
from typing import Dict, NamedTuple, Optional, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import directories, input as cifar10_input, summaries, views
from cifar10.data import verification
from cifar10.report import evaluation_summary, predictions_file, tags, text_report
from cifar10.report.mistakes import Mistake, Mistakes
from cifar10.report.scores import Scores
from cifar10.runs import checkpoint, machine, run_directory, watch

_MISTAKES = 24  # that are shown


class Result(NamedTuple):
    """What an evaluation has found."""

    step: int
    num_views: int
    scores: Scores
    mistakes: Sequence[Mistake]  # the most confident ones
    class_names: Optional[Sequence[str]]  # None if nothing tells them
    # by summary tag; the cross entropy is the mean over the examples, without label smoothing
    losses: Dict[str, float]


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
        self._config = machine.session_config(
            [device], machine.choose_threads([device], cifar10_input.BATCH_SIZE)
        )
        num_slices = machine.num_slices([device], cifar10_input.BATCH_SIZE)
        self.graph = tf.Graph()
        with self.graph.as_default():
            labels, images = cifar10_input.undistorted_records(records, num_epochs=1)
            labels = cifar10_input.check_labels(labels, records.num_classes)
            with tf.device(device):
                # With a weight decay of 1, 'losses' holds l2_loss itself; `evaluate` multiplies it
                # by that of the run.
                log_probabilities = views.log_probabilities(
                    images, num_views, records.num_classes, num_slices, fc_weight_decay=1.0
                )
            self._batch = labels, images, log_probabilities
            self._l2_losses = {
                'losses/' + part.op.name: part for part in tf.get_collection('losses')
            }
            self._variables = {variable.op.name: variable for variable in tf.trainable_variables()}

    def evaluate(self, restored):
        """Scores the moving averages in a checkpoint; if it has none, says so and scores its raw
        weights.

        The weight decay in the losses is that of the run, which the checkpoint's directory records.

        Args:
          restored: a Checkpoint.

        Returns:
          A Result.

        Raises:
          UserError: the checkpoint was trained on other classes, does not fit the network or is not
            finite, the record is damaged, or a file of the examples has changed since the Evaluator
            was made.
        """
        self._watch.check()
        train_dir = os.path.dirname(restored.path)
        run_directory.check_classes(train_dir, self._class_names)
        decay = run_directory.recorded_hparams(train_dir).fc_weight_decay
        suffix = checkpoint.suffix_in_use(restored)
        variables = {name + suffix: variable for name, variable in self._variables.items()}
        checkpoint.check_fits(restored, variables)
        with tf.Session(graph=self.graph, config=self._config) as session:
            for name, variable in variables.items():
                variable.load(restored.values[name], session)
            scores, mistakes = self._run_over_examples(session)
            l2_losses = session.run(self._l2_losses)
        losses = {tag: decay * float(value) for tag, value in l2_losses.items()}
        losses[tags.CROSS_ENTROPY] = float(scores.cross_entropies.mean())
        losses[tags.TOTAL_LOSS] = sum(losses.values())
        return Result(restored.step, self._num_views, scores, mistakes, self._class_names, losses)

    def _run_over_examples(self, session):
        """The Scores of the examples, and the most confident mistakes."""
        all_labels, all_log_probabilities, mistakes = [], [], Mistakes(_MISTAKES)
        missing = self._num_examples
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        self._watch.start(coord)
        with self._watch.explaining():
            try:
                while missing > 0:
                    labels, images, log_probabilities = [
                        values[:missing] for values in session.run(self._batch)
                    ]
                    mistakes.add(self._num_examples - missing, labels, images, log_probabilities)
                    all_labels.append(labels)
                    all_log_probabilities.append(log_probabilities)
                    missing -= len(labels)
                coord.request_stop()
                # raises what went wrong, but not the OutOfRangeError that ends the data
                coord.join(threads)
            except tf.errors.OpError:
                coord.raise_requested_exception()  # of the thread whose end was the reason
                raise
            finally:
                coord.request_stop()
        self._watch.check()
        return Scores(
            np.concatenate(all_labels), np.concatenate(all_log_probabilities)
        ), mistakes.found


def describe(result, top_k=None):
    """The line that tells the precision of a Result, with its confidence interval; with `top_k`
    also precision @ k."""
    scores, several_views = (
        result.scores,
        '%d views, ' % result.num_views if result.num_views > 1 else '',
    )
    return '%s: precision @ 1 = %.3f (%d of %d, %sstep %d), 95 %% interval %.3f to %.3f%s' % (
        (
            datetime.datetime.now().isoformat(' ', 'microseconds'),
            scores.precision,
            scores.num_correct,
            scores.num_examples,
            several_views,
            result.step,
        )
        + scores.interval
        + (
            ', precision @ %d = %.3f' % (top_k, scores.num_correct_at(top_k) / scores.num_examples)
            if top_k
            else '',
        )
    )


def evaluate(evaluator, checkpoints, eval_dir, top_k=None, predictions=None):
    """Evaluates checkpoints; prints the precision of each and writes it, and what else is known,
    for TensorBoard.

    In the end it prints the tables of the last one: precision and recall of each class, confusions,
    calibration, mistakes.

    Args:
      evaluator: an Evaluator.
      checkpoints: an iterable of Checkpoint.
      eval_dir: directory of the summaries.
      top_k: for precision @ k as well; None for precision @ 1 alone.
      predictions: the path of a CSV file for the probabilities that the last checkpoint gives; None
        for none.

    Raises:
      UserError: see Evaluator.evaluate; or a file cannot be written.
    """
    result = None
    directories.make(eval_dir)
    with evaluator.graph.as_default(), summaries.writer(eval_dir) as write:
        for restored in checkpoints:
            result = evaluator.evaluate(restored)
            print(describe(result, top_k), flush=True)
            write(evaluation_summary.summary(result, top_k), result.step)
    if result:
        print(text_report.whole(result), flush=True)
    if result and predictions:
        predictions_file.write(predictions, result.scores, result.class_names)
