"""Job of a run, training step and training session."""

import contextlib
import dataclasses
from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10 import __version__, optimizer, placement
from cifar10.config import (
    CLASSIC,
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
    HParams,
    RunLength,
    RunSettings,
)
from cifar10.data import verification
from cifar10.data.dataset import Dataset
from cifar10.hooks.eval_hook import EvalHook
from cifar10.input import InputSettings, Shard
from cifar10.report import tensorboard
from cifar10.system import machine
from cifar10.system.machine import Threads

_SEEDS_PER_WORKER = 2**22  # TensorFlow has 2^31 - 1 different seeds.


class Job(NamedTuple):
    """Specification of a run: data, hyperparameters, settings, devices."""

    dataset: Dataset
    hparams: HParams = CLASSIC
    devices: Sequence[str] = ('/cpu:0',)  # of tower 0, then of tower 1, ...
    settings: RunSettings = RunSettings()
    devices_per_tower: int = 1  # for the layers of one tower
    variable_strategy: str = 'cpu'  # one of config.VARIABLE_STRATEGIES
    shard: Shard = Shard()  # of the examples
    mode: Optional[str] = None  # of a cluster, one of distributed.cluster.MODES
    # In a cluster, a step uses the batches of several workers, or several batches of one worker.
    batches_per_tower: int = 1  # batches per step for each tower of this process
    steps_per_execution: int = 1  # steps per session run of the train op

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
        return len(self.devices) // self.devices_per_tower

    @property
    def variable_devices(self):
        """The devices of the variables."""
        return placement.variable_devices(self.variable_strategy, self.devices)

    @property
    def first_devices(self):
        """The first device of each tower."""
        return self.devices[:: self.devices_per_tower]

    @property
    def run_length(self):
        """The RunLength: max_steps or hparams.epochs, whichever ends first."""
        endless = RunLength(
            self.hparams.batch_size * self.num_towers * self.batches_per_tower,
            self.num_examples,
            steps_per_execution=self.steps_per_execution,
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
        """The record of the run, see run_record.

        Raises:
          UserError: a training file is missing.
        """
        return dict(
            dataclasses.asdict(self.hparams),
            batches_per_step=self.num_towers * self.batches_per_tower,
            num_examples=self.num_examples,
            class_names=self.dataset.class_names,
            data_checksum=verification.total_checksum(self.dataset.train),
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
        return machine.choose_threads(self.first_devices, self.hparams.batch_size, requested)

    @property
    def num_sub_batches(self):
        """The number of sub-batches per tower, see model.set_num_sub_batches."""
        return machine.num_sub_batches(
            self.first_devices, self.hparams.batch_size, self.settings.inter_op_threads
        )

    @property
    def session_config(self):
        """The tf.ConfigProto of the session."""
        return machine.session_config(
            self.devices, self.threads, self.settings.log_device_placement
        )


def requested_threads(settings):
    """Return the Threads of RunSettings; 0 is unset."""
    return Threads(
        settings.intra_op_threads, settings.inter_op_threads, settings.num_preprocess_threads
    )


class Step:
    """Tensors and operations of a training step.

    Attributes:
      train_op: the operation that applies one update and increments the global step.
      losses: a list of the towers' losses, float32 scalars.
      tower_grads: a list of the towers' lists of (gradient, variable).
      learning_rate: a float scalar.
      summary_op: a string scalar, fetched together with the train op.
      global_step: int64 scalar, the number of updates including this one.
      loss: float32 scalar, the mean of `losses`.
    """

    def __init__(self, train_op, losses, tower_grads, learning_rate, summary_op):
        """Add global_step and loss to the default graph; see Attributes."""
        self.train_op, self.losses, self.tower_grads = train_op, losses, tower_grads
        self.learning_rate, self.summary_op = learning_rate, summary_op
        with tf.device('/cpu:0'):
            with tf.control_dependencies([train_op]):
                self.global_step = tf.identity(tf.train.get_global_step().read_value(), name='step')
            self.loss = tf.divide(tf.add_n(losses), float(len(losses)), name='loss')


def set_seed(settings, first_step, worker_index=0):
    """Seed the default graph, if the RunSettings have a seed.

    Each worker of a cluster gets its own seed. So does each resumed run, unless it is
    deterministic: that one replays the input from the first step, see session_hooks.ReplayHook.
    """
    if settings.seed is not None:
        shift = 0 if settings.deterministic else first_step
        tf.set_random_seed(settings.seed + shift + _SEEDS_PER_WORKER * worker_index)


def is_complete(job, first_step, run):
    """Return True, after a line, if the run has reached its last step and is saved.

    The last checkpoint is evaluated if the Job keeps the best checkpoint, but the run has none, or
    if a kill of a deterministic run has prevented its last evaluation.

    Args:
      job: a Job.
      first_step: the global step at which training would start.
      run: a Run; None for a worker that is not the chief.

    Raises:
      UserError: the best checkpoint cannot be kept.
    """
    last_step = job.run_length.last_step
    if first_step < last_step or run and run.saved_step != first_step:
        return False
    print(f'Nothing to do: the run ends at step {last_step}')
    settings = job.settings
    if run and (
        settings.keep_best
        and not run.record['best']
        or settings.deterministic
        and run.record['evaluated_step'] < last_step
    ):
        EvalHook(None, run, job.dataset.test, settings, job.devices[0]).evaluate_last()
        run.output_errors.check(None)
    return True


class SessionSettings(NamedTuple):
    """Session settings of a worker of a cluster."""

    config: tf.ConfigProto
    master: str  # the target of its tf.train.Server
    initializes_variables: bool  # False: another process initializes them


@contextlib.contextmanager
def session(job, run, saver, hooks, settings=None):
    """Yield a training session that starts from the checkpoint of the run, if it has one.

    Args:
      job: a Job.
      run: a Run; None for a worker that is not the chief.
      saver: a tf.train.Saver.
      hooks: a list of tf.train.SessionRunHook. They act in the order of the list.
      settings: a SessionSettings; None for a single process.

    Raises:
      UserError: the checkpoint does not fit, or a hook raises it.
    """
    settings = settings or SessionSettings(job.session_config, '', True)
    init_op = None if settings.initializes_variables else tf.no_op()
    init_fn = run.init_fn() if run and settings.initializes_variables else None
    scaffold = tf.train.Scaffold(init_op=init_op, init_fn=init_fn, saver=saver)
    with tf.train.SingularMonitoredSession(
        hooks, scaffold, settings.master, settings.config, stop_grace_period_secs=10
    ) as monitored:
        yield monitored


def end_run(run, last_step, stop_signal):
    """Write the end of a complete run for TensorBoard; report missing outputs.

    Args:
      run: a Run.
      last_step: its last global step.
      stop_signal: the signal that has stopped the run before its end, or None.

    Raises:
      UserError: the directory has been moved, or an output is missing.
    """
    run.check_directory()
    if not stop_signal:
        run.summary_writer.add_summary(tensorboard.run_end_summary(), last_step)
    run.output_errors.check(stop_signal)
