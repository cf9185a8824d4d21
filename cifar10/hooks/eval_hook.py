"""Evaluation by the trainer, during and after training."""

import os
import time

import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import verification
from cifar10.hooks import session_hooks
from cifar10.report import tensorboard
from cifar10.runs import checkpoint, checkpoint_files


class EvalHook(session_hooks.FetchingHook):
    """Hook that evaluates the moving averages on the test images every `eval_every` steps.

    An evaluation prints and writes the precision. With `keep_best`, it also keeps the best
    checkpoint. Training pauses, so the logged throughput is lower.
    """

    _evaluator = None  # created by the first evaluation: the first step is not delayed
    _evaluated = None  # the step of the last evaluation
    _best_precision = 0  # even if its checkpoint could not be saved

    def __init__(self, step, job, run, summary_writer):
        """Verify the test files before training.

        Args:
          step: a training.Step.
          job: a Job.
          run: a ChiefRun.
          summary_writer: a SummaryWriter, or None for no summary.

        Raises:
          UserError: a test file is missing or malformed.
        """
        super().__init__(step and step.global_step)
        self._job, self._summary_writer = job, summary_writer
        self._directory, self._output_errors = run.directory, run.output_errors
        verification.verify(job.dataset.test)

    def begin(self):
        """Collect the variables."""
        self._variables = {variable.op.name: variable for variable in tf.global_variables()}

    def after_create_session(self, session, coord):
        """Record the current step."""
        self._step = session.run(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        """Evaluate when it is due."""
        before, self._step = self._step, run_values.results
        every, last_step = self._job.intervals.eval_every, self._job.run_length.last_step
        if (
            every
            and self._step < last_step
            and session_hooks.should_trigger(self._step, before, every)
        ):
            # Messages name it; a checkpoint file of this step may never be saved.
            path = os.path.join(self._directory.path, f'step {self._step} (in memory)')
            values = run_context.session.run(self._variables)
            with self._output_errors.collect('an evaluation'):  # A test file may have changed.
                self._evaluate(checkpoint.Checkpoint(path, int(self._step), values))

    def evaluate_last(self):
        """Evaluate the last checkpoint of the run, unless it is already evaluated."""
        # The checkpoint may not match the network.
        with self._output_errors.collect('an evaluation'):
            last = checkpoint.read_latest(self._directory.path)
            if last and last.step != self._evaluated:
                self._evaluate(last)

    def _evaluate(self, ckpt):
        start = time.monotonic()
        if self._evaluator is None:
            self._evaluator = evaluation.Evaluator(self._job.dataset.test, self._job.devices[0])
        result = self._evaluator.evaluate(ckpt)
        self._evaluated = ckpt.step
        print(
            f'{evaluation.format_result(result)}\nThe evaluation took {time.monotonic() - start:.1f} s'
        )
        precision = result.metrics.precision
        if self._summary_writer:
            value = tf.Summary.Value(tag=tensorboard.PRECISION, simple_value=precision)
            self._summary_writer.add_summary(tf.Summary(value=[value]), result.step)
        if self._job.intervals.keep_best:
            self._best_precision = max(self._best_precision, precision)
            with self._output_errors.collect('the best checkpoint'):
                checkpoint_files.keep_best(self._directory, ckpt, precision)
                if precision == self._best_precision:
                    self._output_errors.remove('the best checkpoint')
