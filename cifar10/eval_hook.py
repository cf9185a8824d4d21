"""Evaluation by the trainer, during and after training."""

import os
import time

import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.hooks import STEP, should_trigger
from cifar10.report import event_files
from cifar10.runs import checkpoint


class EvalHook(tf.train.SessionRunHook):
    """Hook that evaluates the moving averages on the test images.

    It evaluates every `every_n_steps` steps, and the last checkpoint at the end. An evaluation
    prints and writes the precision. Training pauses, so the logged throughput is lower. A subclass
    gets the result in `after_evaluation`. TensorFlow has no such hook.
    """

    _evaluator = None  # created by the first evaluation: the first step is not delayed
    _evaluated = None  # the step of the last evaluation

    def __init__(self, run, split, every_n_steps=None, device='/cpu:0'):
        """Make the hook; in the list, it must be after the SaverHook.

        Args:
          run: a Run.
          split: the dataset.Split of the test images.
          every_n_steps: see RunSettings.eval_every.
          device: the name of the device for the evaluation.
        """
        self._run, self._split, self._device = run, split, device
        self._every_n_steps = every_n_steps

    def begin(self):
        """Collect the variables."""
        self._variables = {variable.op.name: variable for variable in tf.global_variables()}

    def after_create_session(self, session, coord):
        """Record the current step."""
        self._global_step = session.run(tf.train.get_global_step())

    def before_run(self, run_context):
        """Request the step."""
        return tf.train.SessionRunArgs(STEP)

    def after_run(self, run_context, run_values):
        """Evaluate the weights of the session when it is due; the last step is left to `end`."""
        before, self._global_step = self._global_step, run_values.results
        if (
            run_context.stop_requested
            or not self._every_n_steps
            or not should_trigger(self._global_step, before, self._every_n_steps)
        ):
            return
        # Messages name it; a checkpoint file of this step may never be saved.
        path = os.path.join(self._run.directory, f'step {self._global_step} (in memory)')
        values = run_context.session.run(self._variables)
        self._evaluate(checkpoint.Checkpoint(path, int(self._global_step), values), run_context)

    def end(self, session):
        """Evaluate the last checkpoint of the run, unless it is already evaluated."""
        if self._every_n_steps == 0:
            return
        last = checkpoint.read_latest(self._run.directory)
        if last.step != self._evaluated:
            self._evaluate(last, tf.train.SessionRunContext(None, session))

    def after_evaluation(self, result, run_context):
        """Do nothing; a subclass may save the weights of the session, or stop.

        Args:
          result: a metrics.Result; `result.metrics.accuracy` is the precision.
          run_context: a tf.train.SessionRunContext; it has the `session`, and `request_stop()`.
        """

    def _evaluate(self, ckpt, run_context):
        """Evaluate a Checkpoint; print and write the precision."""
        start = time.monotonic()
        if self._evaluator is None:
            self._evaluator = evaluation.Evaluator(
                self._split, self._device, network_name=self._run.record.network
            )
        result = self._evaluator.evaluate(ckpt)
        self._evaluated = ckpt.step
        seconds = time.monotonic() - start
        print(f'{evaluation.format_result(result)}\nThe evaluation took {seconds:.1f} s')
        value = tf.Summary.Value(tag=event_files.PRECISION, simple_value=result.metrics.accuracy)
        writer = tf.summary.FileWriterCache.get(self._run.directory)
        event_files.write(writer, [tf.Summary(value=[value])], result.step)
        self.after_evaluation(result, run_context)
