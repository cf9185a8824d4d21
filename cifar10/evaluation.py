"""Evaluation of checkpoints: every example exactly once."""

import contextlib
import datetime
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, distortions, input as input_lib, network
from cifar10.data import verification
from cifar10.errors import UserError
from cifar10.report import event_files, text_report
from cifar10.report.metrics import Metrics, Result
from cifar10.runs import checkpoint, run_record
from cifar10.system import directories, files, machine

_POLL_SECS = 2


class Evaluator:
    """Evaluation graph, built once for all checkpoints of a network.

    Attributes:
      graph: the tf.Graph of the last evaluation, or None.
    """

    graph = _network = None

    def __init__(self, split, device='/cpu:0', num_examples=None, network_name=None):
        """Verify the data.

        Args:
          split: the Split to evaluate, e.g. the test split of a Dataset.
          device: the device of the network.
          num_examples: evaluate at most the first `num_examples`; None evaluates all.
          network_name: see network.of_run.

        Raises:
          UserError: a file is missing or malformed.
        """
        split = verification.verify_split(split)
        self._split, self._device, self._network_name = split, device, network_name
        self._num_examples = min(num_examples or split.num_examples, split.num_examples)

    def _build(self, chosen):
        """Build the graph with a Network, unless it is there."""
        number = machine.num_sub_batches([self._device], input_lib.BATCH_SIZE)
        chosen = chosen._replace(num_sub_batches=number)
        if chosen == self._network:
            return
        self._network, self.graph, split = chosen, tf.Graph(), self._split
        with self.graph.as_default():
            labels, images = input_lib.undistorted_records(split, num_epochs=1)
            # For a smaller last batch, a GPU would choose the algorithms of the convolutions again,
            # which takes 1 to 2 s.
            padded = cpu_kernels.pad_batch(images, input_lib.BATCH_SIZE)
            padded.set_shape([input_lib.BATCH_SIZE, *images.shape[1:]])
            with tf.device(self._device):
                with tf.name_scope('crop'):
                    crops = distortions.crop(padded)
                log_probabilities = tf.nn.log_softmax(chosen.inference(crops))
            self._batch = labels, images, log_probabilities
            self._losses = {'losses/' + part.op.name: part for part in tf.get_collection('losses')}
            self._variables = network.variables()
        number = cpu_kernels.num_sub_batches(self.graph)
        resources = machine.resources([self._device], number)
        self._config = machine.session_config([self._device], resources.threads)

    def evaluate(self, ckpt):
        """Evaluate the moving averages in a checkpoint.

        A checkpoint without moving averages is evaluated with its weights. The notes about the
        checkpoint are printed. The network, and its weight decay, are those of the run's record.

        Args:
          ckpt: a Checkpoint.

        Returns:
          A Result.

        Raises:
          UserError: the checkpoint has other classes, or does not fit the network,
            or the record is damaged.
        """
        train_dir = os.path.dirname(ckpt.path)
        run_record.check_classes(train_dir, self._split.class_names)
        chosen = network.of_run(train_dir, self._network_name, self._split.num_classes)
        self._build(chosen)
        notes = [*checkpoint.averages_notes(ckpt), *network.source_notes(train_dir, chosen)]
        for note in [*ckpt.notes, *notes]:
            print(note)
        variables = checkpoint.sources(ckpt, self._variables)
        checkpoint.check_fits(ckpt, variables)
        with tf.Session(graph=self.graph, config=self._config) as session:
            for name, variable in variables.items():
                variable.load(ckpt.values[name], session)
            metrics, mistakes = self._evaluate_examples(session)
            losses = session.run(self._losses)
        losses = {tag: float(value) for tag, value in losses.items()}
        losses[event_files.CROSS_ENTROPY] = float(metrics.cross_entropies.mean())
        losses[event_files.TOTAL_LOSS] = sum(losses.values())
        names = list(self._split.class_names or map(str, range(metrics.num_classes)))
        image_files = self._split.image_files()
        return Result(ckpt.step, metrics, mistakes, names, losses, image_files)

    def _evaluate_examples(self, session):
        """Return the Metrics and the most confident mistakes."""
        batches, mistakes = [], []
        missing = self._num_examples
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        try:
            while missing > 0:
                # The slices drop the padding of the last batch, and what num_examples leaves out.
                labels, images, log_probabilities = [
                    values[:missing] for values in session.run(self._batch)
                ]
                batch = Metrics(labels, log_probabilities)
                mistakes += batch.mistakes(images, self._num_examples - missing)
                mistakes.sort(key=lambda mistake: -mistake.probability)
                del mistakes[24:]  # The figures show 24.
                batches.append(batch)
                missing -= batch.num_examples
            coord.request_stop()
            # join raises the errors of the threads, except OutOfRangeError at the end of data.
            coord.join(threads)
        except tf.errors.OpError:
            coord.raise_requested_exception()  # the thread's error is the cause
            raise
        finally:
            coord.request_stop()
        return Metrics(*map(np.concatenate, zip(*batches))), mistakes


def format_result(result, top_k=None):
    """Return a line with precision @ 1, its confidence interval, and precision @ `top_k`."""
    metrics = result.metrics
    now = datetime.datetime.now().isoformat(' ', 'microseconds')
    lower, upper = metrics.confidence_interval
    line = (
        f'{now}: precision @ 1 = {metrics.accuracy:.3f} ({metrics.num_correct} of {metrics.num_examples}, '
        f'step {result.step}), 95 % interval {lower:.3f} to {upper:.3f}'
    )
    if top_k:
        line += f', precision @ {top_k} = {metrics.precision_at_k(top_k):.3f}'
    return line


def checkpoints_iterator(checkpoint_dir, min_interval_secs=300, timeout_secs=None):
    """Yield the newest Checkpoint, at most once per `min_interval_secs` seconds.

    The last checkpoint of the run does not wait. That of the initial weights, step 0, is left out.
    Stop at the end of the run, or after `timeout_secs` seconds without a new checkpoint; None has
    no timeout.

    tf.train.checkpoints_iterator compares names. It would miss a checkpoint that is saved again
    under the same name.

    Raises:
      UserError: all checkpoints are damaged, or there was no checkpoint before the timeout.
    """
    newest = evaluated = checkpoint.Saved(0, 0, None)
    due_time = changed_time = time.monotonic()
    if not checkpoint.newest_step(checkpoint_dir):
        print(f'Waiting for a checkpoint in {checkpoint_dir}')
    while True:
        found = checkpoint.find(checkpoint_dir)
        last_step = run_record.read(checkpoint_dir).last_step
        now = time.monotonic()
        # Not the highest step: that one may be damaged, and the trainer saves lower ones again.
        latest = max(found, key=lambda saved: saved.time, default=newest)
        if latest.step and latest != newest:
            newest, changed_time = latest, now
        is_over = timeout_secs is not None and now - changed_time >= timeout_secs
        has_ended = bool(found) and found[0].step >= last_step
        if newest != evaluated and (has_ended or is_over or now >= due_time):
            evaluated, due_time = newest, now + min_interval_secs
            ckpt = checkpoint.read_latest(checkpoint_dir)
            if ckpt:  # else the directory has just been moved
                yield ckpt
            if not has_ended and not is_over:
                print(f'The next evaluation is in {min_interval_secs} seconds at the earliest')
        elif has_ended and not directories.is_locked(checkpoint_dir):  # else it is being resumed
            print(f'The run in {checkpoint_dir} has ended: its last checkpoint is evaluated')
            return
        elif is_over and not evaluated.step:
            raise UserError(
                f'No checkpoint was found in {checkpoint_dir} within {int(timeout_secs)} seconds: '
                'train there first, or give a longer --timeout_secs'
            )
        elif is_over:
            print(f'No new checkpoint in {checkpoint_dir} for {int(timeout_secs)} seconds')
            return
        else:
            time.sleep(_POLL_SECS)


def evaluate_checkpoints(evaluator, checkpoints, eval_dir, top_k=None):
    """Evaluate checkpoints, print the precision of each, and write summaries.

    Then print the report of the last checkpoint: classes, confusion matrix, calibration, mistakes.

    Args:
      evaluator: an Evaluator.
      checkpoints: an iterable of Checkpoint.
      eval_dir: directory of the summaries.
      top_k: also print precision @ top_k; None prints precision @ 1 only.

    Returns:
      The Result of the last checkpoint; None if there is none.

    Raises:
      UserError: see Evaluator.evaluate; or a summary cannot be written.
    """
    from cifar10.report import figures  # not needed in the trainer

    result = None
    directories.make(eval_dir)
    # tf.summary.FileWriter raises no error in a directory that is not writable.
    files.check_writable(os.path.join(eval_dir, 'events.out.tfevents'))
    if not figures.is_available():
        print('No figures without matplotlib: pip install matplotlib')
    summary_writer = written = None
    try:
        for ckpt in checkpoints:
            result = evaluator.evaluate(ckpt)
            if summary_writer is None:
                with evaluator.graph.as_default():  # TensorFlow 2 refuses a FileWriter outside.
                    summary_writer = tf.summary.FileWriter(eval_dir, evaluator.graph)
                event_files.write(summary_writer, [event_files.custom_scalars_summary()], 0)
            elif evaluator.graph is not written:
                summary_writer.add_graph(evaluator.graph)
            written = evaluator.graph
            print(format_result(result, top_k))
            shown = event_files.evaluation_summary(result, top_k)
            event_files.write(summary_writer, [shown], result.step)
    finally:
        if summary_writer:
            with contextlib.suppress(RuntimeError):  # The last write has raised the same error.
                summary_writer.close()
    if result:
        print(text_report.full_report(result))
    return result
