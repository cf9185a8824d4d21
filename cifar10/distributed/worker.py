"""Worker of a cluster: joining, training, recovery, leaving."""

import contextlib
import threading
import time

import tensorflow.compat.v1 as tf

from cifar10 import hooks, placement, training
from cifar10.data import verification
from cifar10.distributed import (
    allreduce,
    asynchronous,
    averaging,
    cluster_state,
    server,
    synchronous,
    task_context,
    variable_placement,
)
from cifar10.distributed.cluster import CONNECTING, FILLING, JOINING, TRAINING
from cifar10.distributed.stop_hook import StopAtStepHook
from cifar10.errors import reason
from cifar10.eval_hook import EvalHook
from cifar10.report import tensorboard
from cifar10.runs import checkpoint
from cifar10.system import signals

_UPDATES = {
    'sync': synchronous.update,
    'allreduce': allreduce.update,
    'async': asynchronous.update,
    'average': averaging.update,
}
_POLL_SECS = 0.1
_RETRY_SECS = 1
_LEAVE_TIMEOUT_SECS = 3
_HEARTBEAT_SECS = 5
_FINISHED_CHIEF_WAIT_SECS = 10  # A chief whose run has ended waits for the state tasks.
# RuntimeError of tf.train.SessionManager if a parameter server has just lost its variables
_NOT_READY = 'Init operations did not make model ready'
_MAX_JOIN_ATTEMPTS = 5  # without an update; later ones raise errors and restart no timer
_RESTART_JOB = ': restart the job; it resumes from its last checkpoint'


class RunRestarted(Exception):
    """Reinitialization of the variables by the chief."""


class Worker(tf.train.SessionRunHook):
    """Training worker, and hook of its own session.

    Attributes:
      state_tasks: the Tasks that hold the cluster state.
      generation: see cluster_state.ClusterState; 0 before the worker joins.
      initializes_variables: True if this worker initializes or restores the variables.
      first_step: the global step at which it has joined.
    """

    def __init__(self, context, strategy, job, adopted_hparams=()):
        """Make the worker of a TaskContext and a Strategy.

        `adopted_hparams` are the names of the hyperparameters to adopt from the chief.
        """
        self.context, self.strategy, self.job = context, strategy, job
        self.cluster, self.task = context.cluster, context.task
        self.state_tasks = self.cluster.ps_tasks or self.cluster.worker_tasks[:1]
        self._state_variables = cluster_state.ClusterStateVariables(
            self.state_tasks,
            self.cluster.worker_tasks,
            lambda graph: context.connect(graph, self.state_tasks + [self.task]),
        )
        self.generation = self.first_step = self._next_heartbeat = 0
        self._adopted_hparams = adopted_hparams
        self._join_attempts = 0  # since the last update
        self._task_infos = {}  # of state_tasks, if all of them answered with the same addresses
        self._data_checksum = verification.total_checksum(job.dataset.train)
        if self.state_tasks == [self.task]:
            self._state_variables.initialize()

    @property
    def _run_config(self):
        return cluster_state.run_config(self.job, self.strategy, self._data_checksum)

    def run_with_recovery(self, attempt):
        """Join and train, repeat both after each lost task, then leave.

        An all-reduce ends the process after a lost task: TensorFlow cannot reuse its collectives.

        Args:
          attempt: a function that joins and trains. Its argument is True for the first attempt. It
            returns None at the end of the run, or the signal that has stopped the run.

        Raises:
          signals.SignalInterrupt: a signal has stopped the run, which is saved.
        """
        is_first = True
        while True:
            try:
                stop_signal = attempt(is_first)
                if self.generation and not self.task.is_chief:
                    self._wait_for_last_checkpoint()
                break
            except RunRestarted:
                print('The chief has restarted the run: joining it')
                self.context.set_phase(CONNECTING)
            except server.PREEMPTION_ERRORS + (RuntimeError,) as error:
                self._handle_lost_task(error)
            is_first = False
        self.context.watchdog.stop()
        if self.generation:
            leave_thread = threading.Thread(target=self._leave, args=[not stop_signal], daemon=True)
            leave_thread.start()
            # The run is saved, so a lost server must not block the end.
            leave_thread.join(_LEAVE_TIMEOUT_SECS)
        if stop_signal:
            raise signals.SignalInterrupt(stop_signal)
        if self.state_tasks == [self.task]:  # The others read the cluster state of this process.
            self.context.wait_for_workers_to_leave(self._state_variables)

    def _wait_for_last_checkpoint(self):
        """Wait until the chief has saved the last update.

        Raises:
          RunRestarted: the chief was restarted, and repeats the last updates.
        """
        while True:
            states = self._read_states()
            if states and states[0].finished:
                return
            if states and _is_ready(states) and states[0].generation != self.generation:
                raise RunRestarted
            if not states and not self.cluster.ps_hosts:
                task_context.exit_process(
                    'Lost the chief before it had saved the last update' + _RESTART_JOB
                )
            time.sleep(_POLL_SECS)

    def _handle_lost_task(self, error):
        """Print the lost tasks; end an all-reduce. Raise `error` if it has another cause."""
        # Without these tasks, this worker makes no update.
        needed = [
            task for task in self.cluster.ps_tasks or self.cluster.worker_tasks if task != self.task
        ]
        if isinstance(error, RuntimeError) and _NOT_READY not in str(error) or not needed:
            raise error
        self.context.set_phase(CONNECTING)
        task_infos = self.context.read_task_infos(needed)
        self.context.check_addresses(task_infos)
        lost = {
            task: task_info for task, task_info in task_infos.items() if isinstance(task_info, str)
        }
        restarted = {
            task: 'restarted'
            for task, task_info in self._task_infos.items()
            if not lost and task_info.incarnation != task_infos[task].incarnation
        }
        self._task_infos = {}
        message = 'Lost ' + (
            ', '.join(server.describe_awaited(self.cluster, lost or restarted))
            or f'the connection to {" or ".join(map(self.cluster.describe, needed))} ({reason(error)})'
        )
        if not self.cluster.ps_hosts:
            task_context.exit_process(message + _RESTART_JOB)
        # gRPC delays its next connection to a lost task.
        is_waiting = isinstance(error, tf.errors.UnavailableError)
        if self._join_attempts > _MAX_JOIN_ATTEMPTS and not is_waiting and not lost:
            raise error
        print(message + ': joining again')
        time.sleep(_RETRY_SECS if self._join_attempts > 1 else 0)

    def _leave(self, is_finished):
        with contextlib.suppress(tf.errors.OpError):  # The state tasks may have ended.
            if is_finished and self.task.is_chief:
                self._state_variables.write(run_config=self._run_config, finished=1)
                self._state_variables.write(generation=self.generation)
            self._state_variables.set_left(self.task, 1)

    def join(self, saved_step=0, starts_new_run=False, has_ended=lambda: False):
        """Wait for the state tasks and, unless this is the chief, for a run; then join.

        Args:
          saved_step: the global step of the chief's checkpoint, or 0.
          starts_new_run: True if the chief replaces a run in progress.
          has_ended: a function that returns True if this worker's directory holds an ended run.

        Returns:
          True; False if the run has ended.

        Raises:
          UserError: another task has other addresses, or the chief another configuration.
        """
        states, deadline = self._read_states(), time.monotonic() + self._ended_run_timeout()
        while not (states and (self.task.is_chief or _is_ready(states))):
            if time.monotonic() >= deadline and has_ended():
                return self._skip_ended_run(states)
            time.sleep(_POLL_SECS)
            states = self._read_states()
        chief_state, is_running = states[0], _is_ready(states)
        if chief_state.finished and not self.task.is_chief:
            return self._skip_ended_run(states)
        self._join_attempts += 1
        # After that, do not restart the timer, so that repeated attempts time out.
        self.context.join(JOINING, restarts_timer=self._join_attempts <= _MAX_JOIN_ATTEMPTS)
        self.initializes_variables = self.task.is_chief and (
            starts_new_run or self.strategy.is_synchronous or not is_running
        )
        if is_running:
            if not self.task.is_chief:
                self.job = cluster_state.adopt_hparams(
                    self.job, self._adopted_hparams, chief_state.run_config
                )
            cluster_state.check_run_config(
                self.cluster.describe(self.task), self._run_config, chief_state.run_config
            )
        if self.initializes_variables:
            self.generation = time.time_ns() // 1000
            self.first_step = saved_step
            self._state_variables.write(generation=0, step=self.first_step)
        else:
            has_joined_before = self.generation
            self.generation, self.first_step = chief_state.generation, chief_state.step
            if self.first_step or has_joined_before:
                print(f'Joining the run at step {self.first_step}')
            self._state_variables.set_left(self.task, 0)
        return True

    def _ended_run_timeout(self):
        """Return the seconds to wait for tasks if this worker's directory holds an ended run."""
        if self.task.is_chief:
            return _FINISHED_CHIEF_WAIT_SECS
        # On another machine, the chief can have another directory.
        return (
            0
            if server.is_local_address(self.cluster.worker_hosts[0])
            else self.context.timeouts.connect / 2
        )

    def _skip_ended_run(self, states):
        print('Nothing to do: the run has ended')
        self.generation = 0
        if states:
            with contextlib.suppress(tf.errors.OpError):  # These tasks may end now.
                self._state_variables.set_left(self.task, 1)
        return False

    def _read_states(self):
        """Return the ClusterState of each state task, or None if one is down.

        Raises:
          UserError: a state task has other addresses.
        """
        others = [state_task for state_task in self.state_tasks if state_task != self.task]
        if (
            self._task_infos
        ):  # Require only a connection: a stopped task does not answer, but can continue.
            missing = server.unreachable_tasks(self.cluster, others)
        else:
            self._task_infos = self.context.read_task_infos(others)
            self.context.check_addresses(self._task_infos)
            missing = [
                state_task
                for state_task, task_info in self._task_infos.items()
                if isinstance(task_info, str)
            ]
        with contextlib.suppress(tf.errors.OpError):
            if not missing:
                return self._state_variables.read()
        self._task_infos = {}
        return None

    def report_local_step(self):
        """Report a local step; every few seconds, write a heartbeat for the other tasks."""
        self.context.report_progress()
        if time.monotonic() > self._next_heartbeat:
            self._next_heartbeat = time.monotonic() + _HEARTBEAT_SECS
            self._state_variables.write(heartbeat=time.time_ns())

    @property
    def device(self):
        """The device or device function of the worker's graph."""
        if self._owns_variables:
            return self.task.device
        return variable_placement.ps_device_setter(self.cluster, self.task)

    @property
    def _owns_variables(self):
        """True if the worker trains variables of its own."""
        return self.strategy.mode in ('allreduce', 'average')

    def variable_scope(self):
        """Return a context manager in which towers read local variables or copies."""
        devices = self.job.variable_devices
        self._copies = (
            None if self._owns_variables else variable_placement.Copies(self.task, devices)
        )
        return self._copies.variable_scope() if self._copies else placement.variables_on(devices)

    @property
    def local_step(self):
        """The variable with the step of the weights that the worker reads."""
        return self._copies.step if self._copies else tf.train.get_global_step()

    def update(self, gradients, learning_rate, apply_gradients):
        """Return the Update of the mode; see synchronous.update."""
        self._update = _UPDATES[self.strategy.mode](
            self, self._copies, gradients, learning_rate, apply_gradients
        )
        return self._update

    def train(self, run, step, saver, queue):
        """Train until the last step or a signal; see training.session.

        Returns:
          The signal that has stopped the chief, or None.
        """
        job, stop_request = self.job, signals.StopRequest()
        initializes = self.initializes_variables or self._owns_variables
        if self.initializes_variables and not self._owns_variables:
            variable_placement.print_variable_sizes(tf.global_variables())
        config = server.config_with_device_filters(
            self.cluster.ps_tasks + [self.task], job.session_config
        )
        restored_path = None
        if run and initializes:
            restored_path = run.restored_path(saver)
        elif run:  # This saver deletes the checkpoints that the killed chief has saved.
            saver.recover_last_checkpoints(checkpoint.listed_checkpoints(run.directory))
        replay = hooks.ReplayHook(
            queue, job.replayed_batches, self.local_step, stop_request, self.report_local_step
        )
        evaluation = run and EvalHook(step, run, job.dataset.test, job.settings, job.devices[0])
        session_hooks = [
            self,
            *self._update.hooks,
            StopAtStepHook(step, job.run_length.last_step),
            hooks.QueueFillHook(stop_request),
            replay,
            *training.nan_hooks(step),
            *(
                [*training.output_hooks(job, run, step, saver), evaluation]
                if run
                else [hooks.LoggingHook(step, job.run_length, job.settings)]
            ),
            hooks.StopOnSignalHook(stop_request),
        ]
        # Workers that are not the chief have nothing to save: a signal ends them immediately.
        with training.translate_divergence(
            run
        ), stop_request if run else contextlib.nullcontext(), tf.train.SingularMonitoredSession(
            session_hooks,
            tf.train.Scaffold(init_op=None if initializes else tf.no_op(), saver=saver),
            self.context.target,
            config,
            stop_grace_period_secs=10,
            checkpoint_filename_with_path=restored_path,
        ) as session:
            while not session.should_stop():
                session.run(step.train_op)
        if run:
            evaluation.evaluate_last()
            if not stop_request.received_signal:
                end = tensorboard.run_end_summary()
                tensorboard.write(run.summary_writer, [end], job.run_length.last_step)
        return stop_request.received_signal

    def after_create_session(self, session, coord):
        """Run the init ops of the Update; the chief publishes the new generation."""
        if self.initializes_variables:
            session.run(self._update.chief_init_op)
            none_left = [0] * len(self.cluster.worker_tasks)
            self._state_variables.write(run_config=self._run_config, finished=0, left=none_left)
            self._state_variables.write(generation=self.generation)
            self._state_variables.enqueue_tokens()
        session.run(self._update.worker_init_op)
        self.context.set_phase(FILLING)

    def before_run(self, run_context):
        """Request the generation, if the mode has one."""
        self.context.set_phase(TRAINING)
        return tf.train.SessionRunArgs(self._update.generation)

    def after_run(self, run_context, run_values):
        """Report an update; raise RunRestarted after another generation."""
        if self._update.generation is not None and run_values.results != self.generation:
            raise RunRestarted
        self._join_attempts = 0
        self.context.report_progress()


def _is_ready(states):
    """Return True if all state tasks have the same generation."""
    return len({state.generation for state in states}) == 1 and states[0].generation != 0
