"""Run objects: a ChiefRun, which writes the files of a run, and a WorkerRun."""

import contextlib

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.hooks import checkpoint_hooks, eval_hook, profiler_hook, session_hooks
from cifar10.report import tensorboard
from cifar10.runs import checkpoint, checkpoint_files, event_file, run_directory
from cifar10.system import signals


@contextlib.contextmanager
def open_run(train_dir, fresh, job):
    """Lock the train_dir, and yield the ChiefRun of a new or resumed run.

    Args:
      train_dir: the directory.
      fresh: True moves an existing run aside.
      job: the training.Job.

    Raises:
      UserError: see run_directory.lock.
    """
    with run_directory.lock(train_dir, fresh, job) as directory:
        yield ChiefRun(directory)


class ChiefRun:
    """Run of a single trainer or of the chief of a cluster, which writes the files.

    Attributes:
      directory: the RunDirectory.
      first_step: the global step at which this process starts to train.
      output_errors: the errors.OutputErrors.
      plan: the lines of the plan for TensorBoard's Text tab, or None.
    """

    def __init__(self, directory):
        """Create the run of a RunDirectory."""
        self.directory = directory
        self.first_step = directory.saved_step
        self.output_errors = errors.OutputErrors()
        self.plan = None
        self._stop_request = signals.StopRequest()
        self._eval_hook = None

    @property
    def stop_signal(self):
        """The received signal, a signal.Signals, or None."""
        return self._stop_request.received_signal

    def stop_request(self):
        """Return a context manager in which the first signal stops the run after a checkpoint."""
        return self._stop_request

    def summary_writer(self):
        """Return an event_file.SummaryWriter, a context manager."""
        return event_file.SummaryWriter(self.directory.path)

    def is_complete(self, last_step):
        """Return True if the checkpoint of the last step exists."""
        return self.first_step >= last_step and self.first_step == self.directory.saved_step

    def last_checkpoint(self):
        """Return the path of the newest checkpoint, for messages."""
        return (checkpoint_files.candidates(self.directory.path) or ['none yet'])[0]

    def init_fn(self):
        """Return the function of tf.train.Scaffold that restores the checkpoint, or None.

        The function assigns the values that were read and checked. The files may have changed.

        Raises:
          UserError: the checkpoint does not match the default graph.
        """
        resumed = self.directory.resumed
        if not resumed:
            return None
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        checkpoint.check_fits(resumed, variables)
        print(f'Resuming from {resumed.path}, step {resumed.step}')

        def restore(scaffold, session):
            for name, variable in variables.items():
                variable.load(resumed.values[name], session)

        return restore

    def hooks(self, step, nan_hook, job, saver, summary_writer):
        """Write the record and the first summaries; return the hooks that write files.

        Args:
          step: a training.Step.
          nan_hook: a NanHook.
          job: a training.Job.
          saver: a tf.train.Saver.
          summary_writer: a SummaryWriter.

        Raises:
          UserError: a file cannot be written, or a test file is missing or malformed.
        """
        directory, intervals = self.directory, job.intervals
        tensorboard.start(summary_writer, tf.get_default_graph(), self.first_step)
        plan = [tensorboard.plan_summary(self.plan)] if self.plan else []
        for summary in plan + tensorboard.run_start_summaries(directory.record):
            summary_writer.add_summary(summary, self.first_step)
        summary_writer.output_errors = self.output_errors
        directory.write_record()
        saver.recover_last_checkpoints(directory.saved)
        hooks = [
            session_hooks.TrainDirHook(directory.lock),
            session_hooks.SummaryHook(
                step, summary_writer, job.run_length, intervals.save_summaries_steps
            ),
            checkpoint_hooks.CheckpointSaverHook(
                step, saver, directory, intervals.save_checkpoint_steps, nan_hook
            ),
        ]
        if intervals.profile_step:
            hooks.append(
                profiler_hook.ProfilerHook(
                    step, intervals.profile_step, job.run_length, self, summary_writer
                )
            )
        if intervals.eval_every != 0:
            self._eval_hook = eval_hook.EvalHook(step, job, self, summary_writer)
            hooks.append(self._eval_hook)
        return hooks

    def check_directory(self):
        """Raise UserError if the directory has been moved."""
        self.directory.lock.check()

    def finish(self, summary_writer, last_step):
        """Evaluate the last checkpoint, and write the end of the run for TensorBoard.

        Raises:
          UserError: an output is missing.
        """
        if self._eval_hook:
            self._eval_hook.evaluate_last()
        if not self.stop_signal:
            summary_writer.add_summary(tensorboard.run_end_summary(), last_step)
        self.output_errors.check(self.stop_signal)

    def keep_best(self, job):
        """Evaluate the last checkpoint of a complete run if --keep_best has kept none."""
        if job.intervals.keep_best and not self.directory.record.get('best'):
            self.output_errors.training_ended = True
            eval_hook.EvalHook(None, job, self, None).evaluate_last()
            self.output_errors.check(None)


class WorkerRun:
    """Run of a worker that is not the chief.

    A worker writes no file, and a signal stops it at once. Attributes: see ChiefRun.
    """

    directory = stop_signal = plan = None

    def __init__(self, first_step=0):
        """Create the run of a worker that starts at global step `first_step`."""
        self.first_step = first_step
        self.output_errors = errors.OutputErrors()

    def stop_request(self):
        """Return a context manager that changes nothing."""
        return contextlib.nullcontext()

    def summary_writer(self):
        """Return a context manager that yields None."""
        return contextlib.nullcontext()

    def is_complete(self, last_step):
        """Return True if the run has reached its last step."""
        return self.first_step >= last_step

    def last_checkpoint(self):
        """Return a name of the newest checkpoint, for messages."""
        return 'the one of the chief'

    def init_fn(self):
        """Return None: the chief restores the checkpoint."""

    def hooks(self, *unused):
        """Return no hooks."""
        return []

    def check_directory(self):
        """Do nothing: there is no directory."""

    def finish(self, *unused):
        """Do nothing."""

    def keep_best(self, job):
        """Do nothing."""
