"""Job of a run, training step and training session."""

import contextlib
from types import SimpleNamespace
from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10 import distortions, input as cifar10_input, multi_gpu, optimizer, placement
from cifar10.config import (
    CLASSIC,
    MAX_STEPS,
    NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN,
    HParams,
    Intervals,
    RunLength,
)
from cifar10.data import verification
from cifar10.data.dataset import Dataset
from cifar10.hooks import checkpoint_hooks, session_hooks
from cifar10.input import InputSettings, Shard
from cifar10.system import machine
from cifar10.system.machine import Threads

_SEEDS_PER_WORKER = 2**22  # TensorFlow has 2^31 - 1 different seeds.


class Job(NamedTuple):
    """Specification of a run: data, hyperparameters, devices, intervals."""

    dataset: Dataset
    hparams: HParams = CLASSIC
    devices: Sequence[str] = ('/cpu:0',)  # of tower 0, then of tower 1, ...
    requested_threads: Threads = Threads()
    max_steps: int = MAX_STEPS
    intervals: Intervals = Intervals()
    seed: Optional[int] = None  # of initial values and distortions
    # True: the seed also fixes the order of images and of sums (on CPUs only).
    deterministic: bool = False
    shard: Shard = Shard()  # of the examples
    log_device_placement: bool = False
    devices_per_tower: int = 1  # for the layers of one tower
    variable_strategy: str = 'cpu'  # one of config.VARIABLE_STRATEGIES
    batches_per_step: int = 1  # batches per global step, if each worker has one tower
    steps_per_execution: int = 1  # steps per session run of the train op

    @property
    def num_examples(self):
        """The number of training examples; that of CIFAR-10 if a file is missing."""
        counts = [file.num_examples for file in self.dataset.train.files]
        return NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN if None in counts else sum(counts)

    @property
    def model_params(self):
        """The ModelParams of each tower."""
        return multi_gpu.ModelParams(
            self.dataset.num_classes,
            self.num_sub_batches,
            self.hparams.fc_weight_decay,
            self.hparams.label_smoothing,
        )

    @property
    def input_settings(self):
        """The InputSettings."""
        strengths = distortions.Strengths(contrast=self.hparams.contrast)
        return InputSettings(strengths, self.deterministic, self.shard)

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
            self.hparams.batch_size * self.num_towers * self.batches_per_step,
            self.num_examples,
            steps_per_execution=self.steps_per_execution,
        )
        return endless._replace(
            last_step=min(self.max_steps, optimizer.num_steps(endless, self.hparams))
        )

    @property
    def threads(self):
        """The Threads; numbers that are not requested depend on the cores."""
        requested = self.requested_threads
        if self.deterministic:  # The order of sums varies if threads share an operation.
            requested = requested._replace(intra_op=1, prefetch=1)
        return machine.choose_threads(self.first_devices, self.hparams.batch_size, requested)

    @property
    def num_sub_batches(self):
        """The number of sub-batches per tower, see model.inference."""
        return machine.num_sub_batches(
            self.first_devices, self.hparams.batch_size, self.requested_threads.inter_op
        )

    @property
    def session_config(self):
        """The tf.ConfigProto of the session."""
        return machine.session_config(self.devices, self.threads, self.log_device_placement)


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


def build_step(job, batches):
    """Build the step of scripts/cifar10_multi_gpu_train.py without input and summaries.

    Args:
      job: a Job.
      batches: one (images, labels) per tower.

    Returns:
      The train op.
    """
    global_step = tf.train.get_or_create_global_step()
    learning_rate = optimizer.learning_rate(global_step, job.run_length, job.hparams)
    opt = optimizer.create(learning_rate, job.hparams)
    with placement.variables_on(job.variable_devices):
        _, tower_grads = multi_gpu.tower_gradients(job.devices, batches, opt, job.model_params)
    gradients = multi_gpu.average_gradients(tower_grads)
    return optimizer.train(opt, gradients, global_step, job.run_length, job.hparams)


def set_seed(seed, first_step, worker_index=0):
    """Seed the default graph, unless `seed` is None.

    Each resumed run and each worker of a cluster gets its own seed.
    """
    if seed is not None:
        tf.set_random_seed(seed + first_step + _SEEDS_PER_WORKER * worker_index)


class SessionSettings(NamedTuple):
    """Session settings of a worker."""

    config: tf.ConfigProto
    master: str = ''  # the target of a tf.train.Server; '' is a local session
    initializes_variables: bool = True  # False: another process initializes them
    hooks: Sequence[tf.train.SessionRunHook] = ()  # called before all other hooks


@contextlib.contextmanager
def session(step, job, run, saver, summary_writer, settings=None):
    """Yield a training session, then save and evaluate a checkpoint, as `run` requires.

    The session's should_stop() is True after the last step or a signal.

    Args:
      step: a Step in the default graph.
      job: a Job.
      run: a hooks.outputs.ChiefRun, which may resume from a checkpoint, or a WorkerRun.
      saver: a tf.train.Saver.
      summary_writer: the value of run.summary_writer().
      settings: a SessionSettings; None for a single process.

    Raises:
      UserError: a loss, gradient or variable is not finite, the resumed checkpoint does not fit,
        the train_dir is moved, a data file is removed or changed, the last checkpoint cannot be
        saved, or an output is missing at the end.
    """
    settings = settings or SessionSettings(job.session_config)
    init_fn = run.init_fn() if settings.initializes_variables else None
    last_step = job.run_length.last_step
    if run.is_complete(last_step):
        print(f'Nothing to do: the run ends at step {last_step}')
        run.keep_best(job)
        yield SimpleNamespace(should_stop=lambda: True)
        return
    num_parameters = sum(variable.shape.num_elements() for variable in tf.trainable_variables())
    print(f'Network: {num_parameters} parameters')
    nan_hook = checkpoint_hooks.NanHook(step, run.last_checkpoint)
    # The order matters. LoggingHook starts its timer after QueueFillHook has filled the queue.
    # NanHook is before all hooks that print or save values.
    hooks = [
        *settings.hooks,
        session_hooks.StopAtStepHook(step, last_step, run),
        session_hooks.QueueFillHook(run),
        nan_hook,
        session_hooks.LoggingHook(step, job.run_length, job.intervals.log_frequency),
        *run.hooks(step, nan_hook, job, saver, summary_writer),
        session_hooks.StopOnSignalHook(run),
    ]
    init_op = None if settings.initializes_variables else tf.no_op()
    scaffold = tf.train.Scaffold(init_op=init_op, init_fn=init_fn, saver=saver)
    with run.stop_request(), cifar10_input.translate_errors(
        job.dataset.train
    ), tf.train.SingularMonitoredSession(
        hooks, scaffold, settings.master, settings.config, stop_grace_period_secs=10
    ) as monitored:
        # After a DataError, the session saves a checkpoint, and its end raises the error again.
        with contextlib.suppress(cifar10_input.DataError), cifar10_input.translate_errors(
            job.dataset.train
        ):
            yield monitored
        if run.stop_signal:
            print(f'{run.stop_signal.name}: stopping')
    run.output_errors.training_ended = True  # also after a signal
    run.check_directory()
    verification.verify(job.dataset.train)  # TensorFlow's reader skips the rest of a cut file
    run.finish(summary_writer, last_step)
