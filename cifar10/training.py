"""Job of a run, training step and training session."""

import contextlib
from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10 import __version__, hooks, optimizer
from cifar10.config import (
    CLASSIC,
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
    HParams,
    RunLength,
    RunSettings,
)
from cifar10.data import verification
from cifar10.data.dataset import Dataset
from cifar10.eval_hook import EvalHook
from cifar10.input import InputSettings, Shard
from cifar10.report import event_files
from cifar10.runs.run_record import RunRecord
from cifar10.system import machine, signals
from cifar10.system.machine import Threads

_SEEDS_PER_WORKER = 2**22  # TensorFlow has 2^31 - 1 different seeds.


class Job(NamedTuple):
    """Specification of a run: data, hyperparameters, settings, devices."""

    dataset: Dataset
    hparams: HParams = CLASSIC
    devices: Sequence[str] = ('/cpu:0',)  # one per tower
    settings: RunSettings = RunSettings()
    variable_strategy: str = 'cpu'  # one of config.VARIABLE_STRATEGIES
    shard: Shard = Shard()  # of the examples
    dataset_name: Optional[str] = None  # for the record
    mode: Optional[str] = None  # of a cluster, one of distributed.cluster.MODES
    # In a cluster, a step uses the batches of several workers, or several batches of one worker.
    batches_per_tower: int = 1  # batches per step for each tower of this process

    @property
    def num_examples(self):
        """The number of training examples; that of CIFAR-10 if a file is missing."""
        counts = [file.num_examples for file in self.dataset.train.files]
        return NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN if None in counts else sum(counts)

    @property
    def input_settings(self):
        """The InputSettings."""
        return InputSettings(self.hparams, self.settings.deterministic, self.shard)

    @property
    def num_towers(self):
        """The number of towers."""
        return len(self.devices)

    @property
    def variable_device(self):
        """The device of the variables."""
        return '/cpu:0' if self.variable_strategy == 'cpu' else self.devices[0]

    @property
    def run_length(self):
        """The RunLength: max_steps or hparams.epochs, whichever ends first."""
        batches_per_step = self.num_towers * self.batches_per_tower
        endless = RunLength(
            self.hparams.batch_size * batches_per_step,
            self.num_examples,
            batches_per_step=batches_per_step,
        )
        return endless._replace(
            last_step=min(self.settings.max_steps, optimizer.num_steps(endless, self.hparams))
        )

    @property
    def replayed_batches(self):
        """The batches per step that a resumed run replays; 0 if it is not deterministic."""
        return self.num_towers if self.settings.deterministic else 0

    @property
    def record(self):
        """The RunRecord of a new run.

        Raises:
          UserError: a training file is missing.
        """
        return RunRecord(
            hparams=self.hparams,
            batches_per_step=self.run_length.batches_per_step,
            num_examples=self.num_examples,
            class_names=self.dataset.class_names,
            data_checksum=verification.total_checksum(self.dataset.train),
            dataset=self.dataset_name,
            last_step=self.run_length.last_step,
            seed=self.settings.seed,
            deterministic=self.settings.deterministic,
            num_workers=self.shard.num_shards,
            mode=self.mode,
            version=__version__,
            tensorflow=tf.__version__,
            processor=machine.cpu_name(),
            onednn=machine.onednn_setting(),
            num_sub_batches=self.num_sub_batches,
        )

    @property
    def threads(self):
        """The Threads; numbers that are not set depend on the cores."""
        requested = requested_threads(self.settings)
        if self.settings.deterministic:  # The order of sums varies if threads share an operation.
            requested = requested._replace(intra_op=1, prefetch=1)
        return machine.choose_threads(self.devices, self.hparams.batch_size, requested)

    @property
    def num_sub_batches(self):
        """The number of sub-batches per tower, see model.inference."""
        return machine.num_sub_batches(
            self.devices, self.hparams.batch_size, self.settings.inter_op_threads
        )

    @property
    def session_config(self):
        """The tf.ConfigProto of the session."""
        return machine.session_config(
            self.devices, self.threads, self.settings.log_device_placement
        )


def requested_threads(settings):
    """Return the Threads of RunSettings; 0 is unset."""
    return Threads(settings.intra_op_threads, settings.inter_op_threads)


class Step:
    """Tensors and operations of a training step.

    Attributes:
      train_op: the operation that applies one update and increments the global step.
      global_step: int64 scalar, the number of updates including this one.
      loss: float32 scalar, the mean of the towers' losses.
      gradient_norm: float32 scalar, the global norm of the averaged gradients.
      summary_op: a string scalar, fetched together with the train op. It includes the moving
        average of the loss, a variable in LOCAL_VARIABLES: it is in no checkpoint.
    """

    def __init__(self, train_op, losses, gradients, summary_op):
        """Add the tensors to the default graph.

        Args:
          train_op: see above.
          losses: a list of the towers' losses, float32 scalars.
          gradients: the list of (gradient, variable) of the update.
          summary_op: the serialized summaries, a string scalar.
        """
        self.train_op = train_op
        with tf.device('/cpu:0'):
            self.loss = tf.divide(tf.add_n(losses), float(len(losses)), name='loss')
            with tf.variable_scope(tf.get_variable_scope(), custom_getter=_get_local_variable):
                # The decay is that of the books. With zero_debias, the average starts at the loss.
                averages = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
                update_average = averages.apply([self.loss])
            with tf.control_dependencies([train_op, update_average]):
                self.global_step = tf.identity(tf.train.get_global_step().read_value(), name='step')
                average = tf.identity(averages.average(self.loss))
            values = [gradient for gradient, _ in gradients]
            # The norm runs after the update, to leave the cores to the update. It is on the device
            # of the gradients, so that only the result is copied from a GPU.
            with tf.name_scope('gradient_norm'), tf.device(
                values[0].device
            ), tf.control_dependencies([train_op]):
                self.gradient_norm = tf.global_norm(values)
            self.summary_op = tf.summary.merge(
                [
                    summary_op,
                    tf.raw_ops.ScalarSummary(tags=event_files.AVERAGE_LOSS, values=average),
                ]
            )


def _get_local_variable(getter, name, **kwargs):
    return getter(name, **dict(kwargs, collections=[tf.GraphKeys.LOCAL_VARIABLES]))


def set_seed(settings, first_step, worker_index=0):
    """Seed the default graph, if the RunSettings have a seed.

    Each worker of a cluster gets its own seed. So does each resumed run, unless it is
    deterministic: that one replays the input from the first step, see hooks.ReplayHook.
    """
    if settings.seed is not None:
        shift = 0 if settings.deterministic else first_step
        tf.set_random_seed(settings.seed + shift + _SEEDS_PER_WORKER * worker_index)


def is_complete(job, run):
    """Return True, after a line, if a Run has saved the last step of its Job."""
    if run.saved_step < job.run_length.last_step:
        return False
    print(nothing_to_do(job, run.directory, run.saved_step))
    return True


def nothing_to_do(job, directory, saved_step):
    """Return the line about a run that has saved the last step of its Job."""
    limits = {
        'max_steps': job.settings.max_steps,
        'epochs': optimizer.num_steps(job.run_length, job.hparams),
    }
    reached = ' and '.join(name for name, limit in limits.items() if limit <= saved_step)
    return (
        f'Nothing to do: the run in {directory} has made {saved_step} of {job.run_length.last_step} steps; '
        f'increase {reached} to extend it'
    )


@contextlib.contextmanager
def session(job, run, step, saver, queue):
    """Yield a training session that starts from the checkpoint of the run, if it has one.

    A signal ends it after the current step. At the end, the last checkpoint is evaluated.

    Args:
      job: a Job.
      run: a Run.
      step: a Step.
      saver: a tf.train.Saver.
      queue: the prefetch queue.

    Raises:
      UserError: the checkpoint does not fit, training diverges, or a hook raises it.
    """
    stop_request = signals.StopRequest()
    restored_path = run.restored_path(saver)
    if restored_path:
        print(f'Resuming from {restored_path}, step {run.saved_step}')
    creator = tf.train.ChiefSessionCreator(
        tf.train.Scaffold(saver=saver),
        '',
        job.session_config,
        checkpoint_filename_with_path=restored_path,
    )
    session_hooks, finish = hooks_and_finish(job, run, step, saver, queue, stop_request)
    with translate_divergence(run), stop_request, tf.train.MonitoredSession(
        creator, session_hooks, stop_grace_period_secs=10
    ) as monitored:
        yield monitored
    finish()


def hooks_and_finish(job, run, step, saver, queue, stop_request):
    """Return the hooks of a training session, and the function to call after it.

    All workers of a cluster have these hooks, too, apart from those that are marked "chief only".
    For the arguments, see `session`: `run` is None for a worker that is not the chief.

    Returns:
      hooks: a list of tf.train.SessionRunHooks.
      finish: a function without arguments, which evaluates the last checkpoint.
    """
    settings, run_length = job.settings, job.run_length
    writer = run and run.summary_writer
    summaries = run and hooks.SummaryHook(
        settings.save_summaries_steps, summary_writer=writer, summary_op=step.summary_op
    )
    evaluation = run and EvalHook(step, run, job.dataset.test, settings.eval_every, job.devices[0])
    session_hooks = [  # TensorFlow calls them in this order, before and after each step.
        # Stop after the last step.
        tf.train.StopAtStepHook(last_step=run_length.last_step),
        # Before the first step, fill the shuffle queue, and show the progress.
        hooks.QueueFillHook(stop_request),
        # In a deterministic run, skip the batches of the steps before the checkpoint.
        hooks.ReplayHook(queue, job.replayed_batches, stop_request),
        # Stop at a loss or gradient that is not finite, before a hook prints or saves it.
        *_nan_hooks(step),
        # Chief only: write summaries.
        summaries,
        # Print log lines. The chief also writes what the summaries of TensorFlow lack.
        hooks.LoggingHook(step, run_length, settings, writer, summaries),
        # Chief only: save checkpoints, also of the initial weights.
        run and _saver_hook(run, saver, settings),
        # Chief only: write the graph for TensorBoard.
        run and hooks.GraphHook(step, writer),
        # Chief only: trace a step.
        run and hooks.ProfilerHook(step, run, settings.profile_step),
        # Chief only: evaluate every `eval_every` steps.
        evaluation,
        # Stop after a signal.
        hooks.StopOnSignalHook(stop_request),
    ]

    def finish():
        if run:
            evaluation.evaluate_last()
            if not stop_request.received_signal:
                end = event_files.run_end_summary()
                event_files.write(writer, [end], run_length.last_step)

    if run:
        start = event_files.run_start_summaries(run.plan, run.record)
        event_files.write(writer, start, run.saved_step)
    return [hook for hook in session_hooks if hook], finish


def _nan_hooks(step):
    """Return the hooks that stop training at a loss or gradient that is not finite.

    Max pooling on the CPU ignores NaN, so a gradient can be wrong although the loss is finite.
    tf.train.NanTensorHook stops at NaN only, so an infinite number becomes NaN.
    """
    return [
        tf.train.NanTensorHook(tf.where(tf.is_finite(x), x, float('nan')))
        for x in (step.loss, step.gradient_norm)
    ]


def _saver_hook(run, saver, settings):
    """Return the tf.train.CheckpointSaverHook of a run."""
    hook = tf.train.CheckpointSaverHook(
        run.directory,
        save_steps=settings.save_checkpoint_steps,
        saver=saver,
        listeners=[hooks.SaveListener(run)],
    )
    if hasattr(hook, '_set_steps_per_run'):
        # Otherwise TensorFlow 2 reads the step in a session run of its own after each step.
        hook._set_steps_per_run(1)
    return hook


@contextlib.contextmanager
def translate_divergence(run):
    """Translate the error of tf.train.NanTensorHook in the block to UserError.

    `run` is a Run; None for a worker that is not the chief.
    """
    try:
        yield
    except tf.train.NanLossDuringTrainingError:
        raise hooks.divergence_error('because the loss or a gradient is not finite', run)
