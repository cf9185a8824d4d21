"""Precision of a checkpoint: every example is scored exactly once."""

import datetime
import itertools
import math
import os
import time
from typing import Dict, NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import distortions, input as cifar10_input, model
from cifar10.data import verification, watch
from cifar10.errors import UserError
from cifar10.report import figures, tensorboard, text_report
from cifar10.report.metrics import Metrics, Mistake
from cifar10.runs import checkpoint, checkpoint_files, event_file, run_directory
from cifar10.system import directories, machine

_POLL_SECS = 2


class Result(NamedTuple):
    """Result of an evaluation."""

    step: int
    num_views: int
    metrics: Metrics
    mistakes: Sequence[Mistake]  # the most confident ones
    class_names: Sequence[str]  # in label order; the numbers of the classes if they have no names
    # by summary tag; the cross entropy is the mean over the examples, without label smoothing
    losses: Dict[str, float]


class Evaluator:
    """Evaluation graph, built once for any number of checkpoints."""

    def __init__(self, split, device='/cpu:0', num_examples=None, num_views=1):
        """Build the graph.

        Args:
          split: the Split to evaluate, like the test split of a Dataset.
          device: the device to compute on.
          num_examples: evaluate only this many examples, the first ones; None takes all.
          num_views: the number of views per image, see crop_and_flip.

        Raises:
          UserError: a file is missing or malformed, or there are fewer examples.
        """
        self._file_watcher = watch.FileWatcher(split)
        num_present = verification.verify(split)
        self._class_names = split.class_names
        self._num_examples = num_examples or num_present
        if self._num_examples > num_present:
            raise UserError(
                f'--num_examples={num_examples} is more than the {num_present} existing examples: leave it out to score all'
            )
        self._num_views = num_views
        self._config = machine.session_config(
            [device], machine.choose_threads([device], cifar10_input.BATCH_SIZE)
        )
        num_sub_batches = machine.num_sub_batches([device], cifar10_input.BATCH_SIZE)
        self.graph = tf.Graph()
        with self.graph.as_default():
            labels, images = cifar10_input.undistorted_records(split, num_epochs=1)
            labels = cifar10_input.check_labels(labels, split.num_classes)
            with tf.device(device):
                # With a weight decay of 1, 'losses' holds l2_loss itself; `evaluate` multiplies it
                # by that of the run.
                log_probabilities = mean_log_probabilities(
                    images, num_views, split.num_classes, num_sub_batches, fc_weight_decay=1.0
                )
            self._batch = labels, images, log_probabilities
            self._l2_losses = {
                'losses/' + part.op.name: part for part in tf.get_collection('losses')
            }
            self._variables = {variable.op.name: variable for variable in tf.trainable_variables()}

    def evaluate(self, ckpt):
        """Evaluate the moving averages in a checkpoint.

        If it has none, print so and evaluate its raw weights. The weight decay in the losses is
        that of the run, which the checkpoint's directory records.

        Args:
          ckpt: a Checkpoint.

        Returns:
          A Result.

        Raises:
          UserError: the checkpoint was trained on other classes, does not fit the network or is not
            finite, the record is damaged, or a file of the examples has changed since the Evaluator
            was made.
        """
        self._file_watcher.check()
        train_dir = os.path.dirname(ckpt.path)
        run_directory.check_classes(train_dir, self._class_names)
        decay = run_directory.read_hparams(train_dir).fc_weight_decay
        suffix = checkpoint.variable_suffix(ckpt)
        variables = {name + suffix: variable for name, variable in self._variables.items()}
        checkpoint.check_fits(ckpt, variables)
        with tf.Session(graph=self.graph, config=self._config) as session:
            for name, variable in variables.items():
                variable.load(ckpt.values[name], session)
            metrics, mistakes = self._evaluate_examples(session)
            l2_losses = session.run(self._l2_losses)
        losses = {tag: decay * float(value) for tag, value in l2_losses.items()}
        losses[tensorboard.CROSS_ENTROPY] = float(metrics.cross_entropies.mean())
        losses[tensorboard.TOTAL_LOSS] = sum(losses.values())
        names = list(self._class_names or map(str, range(metrics.num_classes)))
        return Result(ckpt.step, self._num_views, metrics, mistakes, names, losses)

    def _evaluate_examples(self, session):
        """Return the Metrics of the examples, and the most confident mistakes."""
        batches, mistakes = [], []
        missing = self._num_examples
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        self._file_watcher.start(coord)
        with self._file_watcher.translate_errors():
            try:
                while missing > 0:
                    labels, images, log_probabilities = [
                        values[:missing] for values in session.run(self._batch)
                    ]
                    batch = Metrics(labels, log_probabilities)
                    mistakes += batch.mistakes(images, self._num_examples - missing)
                    mistakes.sort(key=lambda mistake: -mistake.probability)
                    del mistakes[24:]  # as many are shown
                    batches.append(batch)
                    missing -= batch.num_examples
                coord.request_stop()
                # raises what went wrong, but not the OutOfRangeError that ends the data
                coord.join(threads)
            except tf.errors.OpError:
                coord.raise_requested_exception()  # of the thread whose end was the reason
                raise
            finally:
                coord.request_stop()
        self._file_watcher.check()
        return Metrics(*map(np.concatenate, zip(*batches))), mistakes


def crop_and_flip(images, num_views):
    """Return views of each image, standardised.

    Args:
      images: uint8 [n, 3, 32, 32].
      num_views: 1 for the crop at the centre; 2 for this crop and its mirror image; 10 for this
        crop and four others, towards the corners, each with its mirror image.

    Returns:
      A list of `num_views` float32 [n, 24, 24, 3].
    """
    shifts = [(0, 0)]
    if num_views == 10:
        # pixels from the centre of the image to that of a crop, down and across
        shifts += itertools.product([-3, 3], repeat=2)
    crops = [distortions.crop(images, *shift) for shift in shifts]
    return crops if num_views == 1 else crops + [crop[:, :, ::-1] for crop in crops]


def mean_log_probabilities(images, num_views, num_classes, num_sub_batches, fc_weight_decay):
    """Return the logarithm of the mean, over the views, of the probabilities of the classes.

    Args:
      images: uint8 [n, 3, 32, 32].
      num_views: see `crop_and_flip`.
      num_classes: see model.inference.
      num_sub_batches: see model.inference.
      fc_weight_decay: see model.inference.

    Returns:
      float32 [n, num_classes].
    """
    with tf.name_scope('views'):
        images = tf.concat(crop_and_flip(images, num_views), 0)
    logits = model.inference(images, num_classes, num_sub_batches, fc_weight_decay)
    with tf.name_scope('log_probabilities'):
        log_softmax = tf.reshape(tf.nn.log_softmax(logits), [num_views, -1, num_classes])
        return tf.reduce_logsumexp(log_softmax, 0) - math.log(num_views)


def format_result(result, top_k=None):
    """Return a line with precision and confidence interval; with `top_k`, also precision @ k."""
    metrics = result.metrics
    now = datetime.datetime.now().isoformat(' ', 'microseconds')
    views = f'{result.num_views} views, ' if result.num_views > 1 else ''
    lower, upper = metrics.confidence_interval
    line = (
        f'{now}: precision @ 1 = {metrics.precision:.3f} ({metrics.num_correct} of {metrics.num_examples}, '
        f'{views}step {result.step}), 95 % interval {lower:.3f} to {upper:.3f}'
    )
    if top_k:
        line += f', precision @ {top_k} = {metrics.precision_at_k(top_k):.3f}'
    return line


def checkpoints_iterator(checkpoint_dir, min_interval_secs=300, timeout_secs=None):
    """Yield the newest Checkpoint, at most every `min_interval_secs` seconds, and the last one.

    Poll every two seconds. End when the run has ended, or after `timeout_secs` seconds without a
    new checkpoint; if that is None and the run has no end, never. tf.train.checkpoints_iterator
    follows the list alone: it would miss a checkpoint that is saved again under the same name, and
    one that is intact while the latest is damaged.

    Raises:
      UserError: there are checkpoints, but no intact one; or the directory is gone, in which there
        was one; or none has come.
    """
    found = seen = last = None  # what is to be used; the same, and what was, at the last reading
    found_time = due_time = time.monotonic()
    if not checkpoint_files.fingerprint(checkpoint_dir):
        print(f'Waiting for a checkpoint in {checkpoint_dir}')
    while True:
        # in this order, or the last checkpoint could come in between
        has_ended = run_directory.has_ended(checkpoint_dir)
        fingerprint, now = checkpoint_files.fingerprint(checkpoint_dir), time.monotonic()
        if fingerprint != found:
            found, found_time = fingerprint, now
        waited = now - found_time
        is_over = timeout_secs is not None and waited >= timeout_secs
        if found != seen and (now >= due_time or has_ended or is_over):
            seen, ckpt = found, checkpoint.read_latest(checkpoint_dir)
            used = ckpt and (ckpt.path, checkpoint_files.modification_time(ckpt.path))
            if used and used != last:  # The newest may be damaged, and the one before it known.
                last, due_time = used, now + min_interval_secs
                yield ckpt
                continue
        if last and not os.path.isdir(checkpoint_dir):
            time.sleep(1)  # a trainer with --fresh moves it aside and makes it again
            directories.check_exists(
                checkpoint_dir, 'it has been moved or removed: put it back, and start again'
            )
        if has_ended and not directories.is_locked(checkpoint_dir):  # or it is just being resumed
            print(f'The run in {checkpoint_dir} has ended: this was its last checkpoint')
            return
        if is_over and last is None:
            raise UserError(
                f'No checkpoint was found in {checkpoint_dir} within {int(timeout_secs)} seconds: train there first, or give a '
                'longer --timeout_secs'
            )
        if is_over:
            print(f'No new checkpoint in {checkpoint_dir} for {int(waited)} seconds')
            return
        time.sleep(_POLL_SECS)


def evaluate_checkpoints(evaluator, checkpoints, eval_dir, top_k=None):
    """Evaluate checkpoints, print the precision of each, and write summaries.

    At the end, print the tables of the last one: precision and recall of each class, confusions,
    calibration, mistakes.

    Args:
      evaluator: an Evaluator.
      checkpoints: an iterable of Checkpoint.
      eval_dir: directory of the summaries.
      top_k: for precision @ k as well; None for precision @ 1 alone.

    Returns:
      The Result of the last checkpoint; None if there is none.

    Raises:
      UserError: see Evaluator.evaluate; or a file cannot be written.
    """
    result = None
    directories.make(eval_dir)
    if not figures.is_available():
        print('No figures, which need matplotlib: pip install matplotlib')
    with event_file.SummaryWriter(eval_dir) as summary_writer:
        tensorboard.start(summary_writer, evaluator.graph)
        for ckpt in checkpoints:
            result = evaluator.evaluate(ckpt)
            print(format_result(result, top_k))
            summary_writer.add_summary(tensorboard.evaluation_summary(result, top_k), result.step)
    if result:
        print(text_report.full_report(result))
    return result
