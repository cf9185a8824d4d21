"""What is to be trained, the graph that a script's train() builds of it, and the one session
loop."""

import contextlib
from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10 import distortions, errors, multi_gpu, optimizer, placement, summaries
from cifar10.config import CLASSIC, MAX_STEPS, HParams, Intervals, Pace
from cifar10.data.dataset import DataSet
from cifar10.hooks import checkpoint_hooks, eval_hook, profiler_hook, session_hooks
from cifar10.report import tensorboard
from cifar10.runs import checkpoint
from cifar10.system import machine, signals
from cifar10.system.machine import Threads

_SEEDS_PER_WORKER = 2**22  # of 2^31 - 1, which TensorFlow tells apart


class SessionSettings(NamedTuple):
    """How the session of a run is made."""

    config: tf.ConfigProto
    master: str = ''  # the target of a tf.train.Server; '' is a session of this process alone
    first_step: Optional[int] = None  # of the variables; None means that of the checkpoint, or 0
    initialises: bool = True  # whether this process gives the variables their values
    hooks: Sequence[tf.train.SessionRunHook] = ()  # which come before all others


class Job(NamedTuple):
    """What is to be trained, on which data and devices."""

    data: DataSet
    num_examples: int  # in the training set
    hparams: HParams = CLASSIC
    devices: Sequence[str] = ('/cpu:0',)  # of the towers, one after the other
    given_threads: Threads = Threads()
    max_steps: int = MAX_STEPS
    intervals: Intervals = Intervals()
    seed: Optional[int] = None  # of initial values and distortions
    # whether the seed fixes everything else too, at the cost of time; on CPUs only
    deterministic: bool = False
    log_device_placement: bool = False
    devices_per_tower: int = 1  # over which its layers are divided
    variable_strategy: str = 'cpu'  # where the variables live, one of hparams.VARIABLE_STRATEGIES
    # that each tower takes, or, if there are several workers, those towers of theirs together
    batches_per_step: int = 1
    steps_per_run: int = 1  # that a session run of the train op makes

    @property
    def network(self):
        """The Network of each tower."""
        return multi_gpu.Network(
            self.data.num_classes,
            self.num_slices,
            self.hparams.fc_weight_decay,
            self.hparams.label_smoothing,
        )

    @property
    def num_towers(self):
        """The number of towers."""
        return len(self.devices) // self.devices_per_tower

    @property
    def variable_devices(self):
        """The devices over which the variables are spread."""
        return placement.variable_devices(self.variable_strategy, self.devices)

    @property
    def first_devices(self):
        """The first device of each tower."""
        return self.devices[:: self.devices_per_tower]

    @property
    def pace(self):
        """The Pace, which ends after max_steps or hparams.epochs, whichever comes first."""
        endless = Pace(
            self.hparams.batch_size * self.num_towers * self.batches_per_step,
            self.num_examples,
            steps_per_run=self.steps_per_run,
        )
        return endless._replace(
            last_step=min(self.max_steps, optimizer.num_steps(endless, self.hparams))
        )

    @property
    def threads(self):
        """The Threads, those that are not given chosen by the number of cores."""
        if self.deterministic:  # threads that share an operation add up in another order each time
            return self.given_threads._replace(intra_op=1, prefetch=1)
        return machine.choose_threads(
            self.first_devices, self.hparams.batch_size, self.given_threads
        )

    @property
    def num_slices(self):
        """The number of slices of each tower's batch, see model.inference."""
        return machine.num_slices(
            self.first_devices, self.hparams.batch_size, self.given_threads.inter_op
        )

    @property
    def session(self):
        """The SessionSettings."""
        return SessionSettings(
            machine.session_config(self.devices, self.threads, self.log_device_placement)
        )


class TrainGraph(NamedTuple):
    """What a script's train() has built."""

    train_op: tf.Operation  # makes one update and counts it in the global step
    losses: Sequence[tf.Tensor]  # each tower's
    tower_grads: Sequence[list]  # each tower's list of (gradient, variable)
    learning_rate: tf.Tensor  # a scalar
    summary_op: tf.Tensor  # a string scalar, run together with the train op


def build_step(job, batches):
    """Builds the step of scripts/cifar10_multi_gpu_train.py, without its input and summaries.

    Args:
      job: a Job.
      batches: one (images, labels) per tower.

    Returns:
      The train op.
    """
    global_step = tf.train.get_or_create_global_step()
    learning_rate = optimizer.learning_rate(global_step, job.pace, job.hparams)
    opt = optimizer.create(learning_rate, job.hparams)
    with placement.variables_on(job.variable_devices):
        _, tower_grads = multi_gpu.tower_gradients(job.devices, batches, opt, job.network)
    gradients = multi_gpu.average_gradients(tower_grads)
    return optimizer.train(opt, gradients, global_step, job.pace, job.hparams)


def layout(job):
    """Returns the placement.Layout of a step of a Job in one process."""
    size, batch_size = distortions.IMAGE_SIZE, job.hparams.batch_size
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        images = tf.placeholder(tf.float32, [batch_size, size, size, 3])
        labels = tf.placeholder(tf.int32, [batch_size])
        train_op = build_step(job, [(images, labels)] * job.num_towers)
        return placement.layout([train_op], tf.trainable_variables())


def set_seed(seed, first_step, worker=0):
    """Seeds the default graph, unless `seed` is None.

    A resumed run draws other random numbers than its first steps did, and each worker of a cluster
    draws its own.
    """
    if seed is not None:
        tf.set_random_seed(seed + first_step + _SEEDS_PER_WORKER * worker)


def _restoring(resumed):
    """What initialises the variables after their initial values: a function for tf.train.Scaffold,
    or None for a new run.

    The values are those that have been read and checked: what the files hold meanwhile does not
    matter.

    Raises:
      UserError: the checkpoint does not fit the graph.
    """
    if not resumed:
        return None
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    checkpoint.check_fits(resumed, variables)
    print('Resuming from %s, step %d' % (resumed.path, resumed.step))

    def restore(scaffold, session):
        for name, variable in variables.items():
            variable.load(resumed.values[name], session)

    return restore


def run(graph, job, run, session=None):
    """Trains until `job.pace.last_step` or a signal to stop, saves a checkpoint at the end, and
    evaluates it.

    Args:
      graph: a TrainGraph, in the default graph.
      job: a Job.
      run: a RunDirectory; training resumes from its checkpoint, if it has one. None for a worker
        that leaves all writing to another.
      session: a SessionSettings; None takes that of the job.

    Returns:
      None if the run has come to its end, else the signal that stopped it.

    Raises:
      UserError: a loss, a gradient or a variable is not finite, the checkpoint does not fit, a data
        file changes (a checkpoint is saved first), the directory is moved, the last checkpoint
        cannot be saved, or something is missing at the end.
    """
    session, last_step = session or job.session, job.pace.last_step
    if session.first_step is None:
        session = session._replace(first_step=run.first_step)
    restore = _restoring(run.resumed) if run and session.initialises else None
    if session.first_step >= last_step and (run is None or run.first_step == session.first_step):
        print('Nothing to do: the run ends at step %d' % last_step)
        if run and job.intervals.keep_best and not run.record.get('best'):
            failures = errors.Failures()
            failures.is_over = True
            eval_hook.ScoreHook(None, job, run, lambda *unused: None, failures).score_last()
            failures.check(None)
        return None
    print(
        'Network: %d parameters'
        % sum(variable.shape.num_elements() for variable in tf.trainable_variables())
    )
    return _train(graph, job, run, session, restore)


def _train(graph, job, run, session, restore):
    """Trains and saves; see `run`. `restore` is the init_fn of the tf.train.Scaffold."""
    pace, intervals, failures = job.pace, job.intervals, errors.Failures()
    with tf.device('/cpu:0'):
        saver = tf.train.Saver(max_to_keep=intervals.max_to_keep, save_relative_paths=True)
        with tf.control_dependencies([graph.train_op]):
            step = tf.identity(tf.train.get_global_step().read_value(), name='step')
        loss = tf.divide(tf.add_n(graph.losses), float(len(graph.losses)), name='loss')
    scaffold = tf.train.Scaffold(
        init_op=None if session.initialises else tf.no_op(), init_fn=restore, saver=saver
    )
    stop, data_files = signals.StopRequest(), session_hooks.DataFilesHook(job)
    finite = checkpoint_hooks.FiniteHook(step, graph, run and run.path)
    # In this order: the first speed does not count the filling, and nothing that is not finite is
    # printed or saved.
    all_hooks = list(session.hooks) + [
        session_hooks.StopAtStepHook(step, pace.last_step, failures),
        data_files,
        session_hooks.QueueFillHook(lambda: stop.received),
        finite,
        session_hooks.LoggingHook(step, loss, pace, intervals.log_frequency),
    ]
    scores = []
    with contextlib.ExitStack() as stack:
        if run:
            write = stack.enter_context(summaries.writer(run.path, session.first_step))
            for summary in tensorboard.run_started(run.record):
                write(summary, session.first_step)
            write = session_hooks.patient(write, failures)
            run.write_record()
            saver.recover_last_checkpoints(run.saved)
            if intervals.eval_steps != 0:
                scores = [eval_hook.ScoreHook(step, job, run, write, failures)]
            all_hooks += [
                session_hooks.TrainDirHook(run.place),
                session_hooks.SummaryHook(
                    step, graph.summary_op, write, pace, intervals.summary_steps
                ),
                checkpoint_hooks.CheckpointHook(
                    step, saver, run, intervals.checkpoint_steps, finite.check_variables
                ),
            ]
            if intervals.profile_step:
                all_hooks.append(profiler_hook.TraceHook(step, job, run.path, write, failures))
            all_hooks += scores
        # A worker that saves nothing is interrupted at once.
        with stop if run else contextlib.nullcontext(), data_files.explaining():
            with tf.train.SingularMonitoredSession(
                all_hooks, scaffold, session.master, session.config, stop_grace_period_secs=10
            ) as monitored:
                # Else other workers have come to the end; only save.
                if session.first_step < pace.last_step:
                    _repeat(monitored, graph.train_op, stop, data_files)
        failures.is_over = True  # also after a signal
        if run:
            # The directory may have been moved while the last checkpoint was saved.
            run.place.check()
        data_files.check()
        for score in scores:
            score.score_last()
        if run and not stop.received:
            write(tensorboard.run_ended(), pace.last_step)
        failures.check(stop.received)
        return stop.received


def _repeat(monitored, train_op, stop, data_files):
    """Runs the train op until the session, or a signal, wants to stop."""
    if stop.received:  # while the queue was filled: there is nothing to save
        raise signals.Interrupted(stop.received)
    with data_files.explaining():  # so that the session ends as it should, with a checkpoint
        while not monitored.should_stop():
            monitored.run(train_op)
            if stop.received:
                break
    if stop.received:
        print('%s: stopping' % stop.received.name)
