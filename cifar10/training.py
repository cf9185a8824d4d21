"""What is to be trained, the graph that a script's train() builds of it, and the one session loop."""
from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10 import hooks, optimizer, summaries
from cifar10.hparams import CLASSIC, HParams, Pace
from cifar10.runs import checkpoint, machine, signals
from cifar10.runs.machine import Threads


class Intervals(NamedTuple):
    """After how many steps a run prints, writes and saves, and how many checkpoints it keeps."""
    log_frequency: int = 10
    summary_steps: int = 100
    checkpoint_steps: int = 1000
    max_to_keep: int = 5  # checkpoints; 0 keeps all


class SessionSettings(NamedTuple):
    """How the session of a run is made."""
    config: tf.ConfigProto


class Job(NamedTuple):
    """What is to be trained, on which data and devices."""
    data_dir: str  # cifar-10-batches-bin, or its parent
    num_examples: int  # in the training set
    hparams: HParams = CLASSIC
    devices: Sequence[str] = ('/cpu:0',)  # one per tower
    given_threads: Threads = Threads()
    max_steps: int = 1000000
    intervals: Intervals = Intervals()
    seed: Optional[int] = None  # of initial values and distortions
    log_device_placement: bool = False

    @property
    def pace(self):
        """The Pace, which ends after max_steps or hparams.epochs, whichever comes first."""
        endless = Pace(self.hparams.batch_size * len(self.devices), self.num_examples)
        return endless._replace(last_step=min(self.max_steps, optimizer.num_steps(endless, self.hparams)))

    @property
    def threads(self):
        """The Threads, those that are not given chosen by the number of cores."""
        return machine.choose_threads(self.devices, self.hparams.batch_size, self.given_threads)

    @property
    def num_slices(self):
        """The number of slices of each tower's batch, see model.inference."""
        return machine.num_slices(self.devices, self.hparams.batch_size, self.given_threads.inter_op)

    @property
    def session(self):
        """The SessionSettings."""
        return SessionSettings(machine.session_config(self.devices, self.threads, self.log_device_placement))


class TrainGraph(NamedTuple):
    """What a script's train() has built."""
    train_op: tf.Operation  # makes one update and counts it in the global step
    losses: Sequence[tf.Tensor]  # each tower's
    tower_grads: Sequence[list]  # each tower's list of (gradient, variable)
    learning_rate: tf.Tensor  # a scalar
    summary_op: tf.Tensor  # a string scalar, run together with the train op


def set_seed(seed, resumed):
    """Seeds the default graph, unless `seed` is None; a resumed run draws other random numbers than its first steps did."""
    if seed is not None:
        tf.set_random_seed(seed + (resumed.step if resumed else 0))


def _first_step(resumed):
    """The number of updates so far; checks that the checkpoint, if there is one, fits the graph."""
    if not resumed:
        return 0
    checkpoint.check_fits(resumed, {variable.op.name: variable for variable in tf.global_variables()})
    print('Resuming from %s, step %d' % (resumed.path, resumed.step), flush=True)
    return resumed.step


def run(graph, pace, intervals, run, session):
    """Trains until `pace.last_step`, SIGINT or SIGTERM, and saves a checkpoint at the end.

    Args:
      graph: a TrainGraph, in the default graph.
      pace: a Pace.
      intervals: an Intervals.
      run: a RunDirectory; training resumes from its checkpoint, if it has one.
      session: a SessionSettings.

    Raises:
      UserError: a loss, a gradient or a variable is not finite, the checkpoint does not fit, or none can be saved.
    """
    signals.raise_if_interrupted()  # while the graph was built
    first_step = _first_step(run.resumed)
    if first_step >= pace.last_step:
        print('Nothing to do: the run ends at step %d' % pace.last_step, flush=True)
        return
    run.write_record()
    with tf.device('/cpu:0'):
        saver = tf.train.Saver(max_to_keep=intervals.max_to_keep, save_relative_paths=True)
        with tf.control_dependencies([graph.train_op]):
            step = tf.identity(tf.train.get_global_step(), name='step')
        loss = tf.divide(tf.add_n(graph.losses), len(graph.losses), name='loss')
    finite = hooks.FiniteHook(step, graph, run.path)
    with summaries.writer(run.path, first_step) as write_summary, signals.StopRequest() as stop:
        # In this order: the first speed does not count the filling, and nothing that is not finite is printed or saved.
        all_hooks = [
            tf.train.StopAtStepHook(last_step=pace.last_step),
            hooks.FillHook(lambda: stop.received),
            finite,
            hooks.LogHook(step, loss, pace.examples_per_step, intervals.log_frequency),
            hooks.SummaryHook(step, graph.summary_op, write_summary, pace, intervals.summary_steps),
            hooks.CheckpointHook(step, saver, run.path, intervals.checkpoint_steps, finite.check_variables)]
        with tf.train.MonitoredTrainingSession(
                checkpoint_dir=run.path, scaffold=tf.train.Scaffold(saver=saver), hooks=all_hooks, config=session.config,
                save_checkpoint_secs=None, save_checkpoint_steps=None, save_summaries_secs=None, save_summaries_steps=None,
                log_step_count_steps=None) as monitored:
            while not monitored.should_stop() and not stop.received:
                monitored.run(graph.train_op)
            if stop.received:
                print('%s: stopping' % stop.received, flush=True)
