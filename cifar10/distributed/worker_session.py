"""Training session of a worker: start, recovery, comparison with the chief, end."""

import contextlib
import dataclasses
import json
import time
from typing import NamedTuple, Optional, Sequence

import tensorflow.compat.v1 as tf

from cifar10 import optimizer, training
from cifar10.distributed import server
from cifar10.distributed.cluster import EX_TEMPFAIL, Cluster, Strategy, Task
from cifar10.errors import UserError, reason
from cifar10.hooks import STEP
from cifar10.runs import checkpoint

# Errors of TensorFlow's runtime after a peer is lost or restarted
_PREEMPTION_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
    tf.errors.DeadlineExceededError,
)
# RuntimeError of tf.train.SessionManager if a parameter server has just lost its variables
_NOT_READY = 'Init operations did not make model ready'
_END_SECS = 10  # An all-reduce ends within that time after its chief.


class Worker(NamedTuple):
    """A worker of a cluster, and its part of the work."""

    cluster: Cluster
    task: Task
    strategy: Strategy
    job: training.Job
    target: str  # of the worker's tf.train.Server
    watchdog: server.Watchdog

    @property
    def needed_tasks(self):
        """The tasks without which this worker makes no step."""
        workers = self.cluster.worker_tasks
        return self.cluster.ps_tasks + (workers if self.strategy.needs_all_workers else workers[:1])

    def train_op(self, opt, gradients):
        """Return optimizer.train_op with the worker's run length and hyperparameters."""
        job, step = self.job, tf.train.get_global_step()
        return optimizer.train_op(opt, gradients, step, job.run_length, job.hparams)


class WorkerOps(NamedTuple):
    """Operations and hooks with which a worker trains in one of the modes."""

    train_op: tf.Operation
    gradients: Sequence[tuple]  # (gradient, variable), for the summaries
    hooks: Sequence[tf.train.SessionRunHook] = ()
    last_op: Optional[tf.Operation] = None  # runs in the chief, after the last checkpoint


class SessionCreator(tf.train.SessionCreator):
    """Creator of a session, as tf.train.ChiefSessionCreator and tf.train.WorkerSessionCreator.

    The latter looks for the chief's variables every 30 seconds only, this one every second.
    """

    def __init__(self, worker, saver, run):
        """Make the creator; `run` is the Run of the chief, else None."""
        self._worker, self._saver, self._run = worker, saver, run
        self._scaffold = tf.train.Scaffold(saver=saver)
        self._restored_path = run and run.restored_path(saver)
        self._sessions = 0

    def create_session(self):
        """Return a session with initialized, restored or living variables.

        TensorFlow calls it again after a lost server.
        """
        worker, scaffold = self._worker, self._scaffold.finalize()
        is_chief, owns_variables = worker.task.is_chief, worker.strategy.owns_variables
        self._sessions += 1
        if self._sessions > 1 and worker.strategy.mode == 'allreduce':
            # TensorFlow cannot use collectives again after an error.
            server.exit_process(EX_TEMPFAIL, 'lost a worker: start all workers again')
        manager = tf.train.SessionManager(
            scaffold.local_init_op,
            scaffold.ready_op,
            scaffold.ready_for_local_init_op,
            recovery_wait_secs=1,
        )
        config = server.session_config(
            worker.cluster.state_tasks + [worker.task], worker.job.session_config
        )
        has_begun = is_chief and not self._run.initial_weights
        has_begun = has_begun and checkpoint.find(self._run.directory)
        if has_begun and worker.strategy.mode == 'async':
            # The variables on living servers are newer than the checkpoint.
            with contextlib.suppress(tf.errors.DeadlineExceededError):
                return manager.wait_for_session(worker.target, config, max_wait_secs=0)
        if not is_chief and not owns_variables:
            return manager.wait_for_session(worker.target, config)
        return manager.prepare_session(
            worker.target,
            scaffold.init_op,
            self._saver,
            checkpoint_filename_with_path=self._checkpoint_path(),
            config=config,
        )

    def _checkpoint_path(self):
        run, path = self._run, self._restored_path
        step = run and run.saved_step
        if run and self._sessions > 1:
            saved = checkpoint.find(run.directory)[:1]
            step, path = (saved[0].step, saved[0].path) if saved else (0, None)
        if path:
            print(f'Resuming from {path}, step {step}')
        return path


def compare_with_chief(worker):
    """Wait for the chief, and compare flags and data with the chief's.

    This comes before the training session, which would wait forever for the variables of another
    optimizer.

    Raises:
      UserError: a flag or the data differ.
    """
    state_task, own = worker.cluster.state_tasks[0], json.dumps(_configuration(worker))
    config = server.session_config([state_task, worker.task])
    with restart_after_lost_task(), tf.Graph().as_default(), tf.device(state_task.device):
        # All workers share the variable by its name.
        variable = tf.Variable(own, trainable=False, collections=[], name='chiefs_configuration')
        is_written = tf.is_variable_initialized(variable)
        with tf.Session(worker.target, config=config) as session:
            if worker.task.is_chief:
                session.run(variable.initializer)
            while not session.run(is_written):
                time.sleep(server.POLL_SECS)
            chiefs = json.loads(session.run(variable).decode())
    for name, value in json.loads(own).items():
        if value != chiefs.get(name):
            raise UserError(
                f'{worker.task} has another {name} than the chief: '
                'give all workers the same flags and data'
            )


def _configuration(worker):
    """Return a dict of the values that must be equal for all workers."""
    job = worker.job
    return dict(
        dataclasses.asdict(job.hparams),
        network=job.network.checksum,
        num_gpus=job.num_towers,
        max_steps=job.settings.max_steps,
        seed=job.settings.seed,
        deterministic=job.settings.deterministic,
        training_data=job.dataset.train.checksum,
        class_names=job.dataset.class_names,
        **worker.strategy._asdict(),
    )


class StartHook(tf.train.SessionRunHook):
    """Hook that runs an operation after the start of each session."""

    def __init__(self, op):
        """Make the hook."""
        self._op = op

    def after_create_session(self, session, coord):
        """Run the operation."""
        session.run(self._op)


class EndHook(tf.train.SessionRunHook):
    """Hook that reports steps to the watchdog, and ends the process after the last checkpoint.

    No later hook has its `end` called: a session with a lost peer, or with the thread of
    SyncReplicasOptimizer, does not close. The chief evaluates after the others are informed.
    """

    def __init__(self, worker, last_op, stop_request, eval_hook):
        """Make the hook of a Worker; `eval_hook` is the EvalHook of the chief, else None."""
        self._worker, self._last_op = worker, last_op
        self._stop_request, self._eval_hook = stop_request, eval_hook

    def begin(self):
        """Add the operations for the end to the graph."""
        index = tf.constant(self._worker.task.index, tf.int64)
        queues = [server.done_queue(task) for task in self._worker.cluster.state_tasks]
        self._num_done = queues[0].size()
        self._end_op = tf.group(*(queue.enqueue(index) for queue in queues))

    def before_run(self, run_context):
        """Request the step."""
        return tf.train.SessionRunArgs(STEP)

    def after_run(self, run_context, run_values):
        """Report the step; stop after the last one.

        tf.train.StopAtStepHook reads an earlier step, and other workers make updates meanwhile.
        Another step could take the token that the chief needs for its end.
        """
        self._worker.watchdog.report_progress()
        if run_values.results >= self._worker.job.run_length.last_step:
            run_context.request_stop()

    def end(self, session):
        """Tell the others, or wait for the chief, and end the process."""
        worker, stop_signal = self._worker, self._stop_request.received_signal
        if not worker.task.is_chief:
            self._wait_for_chief(session)
        if not stop_signal:
            if self._last_op is not None:
                session.run(self._last_op)
            session.run(self._end_op)
        worker.watchdog.stop()
        if self._eval_hook:
            self._eval_hook.end(session)
        tf.summary.FileWriterCache.clear()
        if worker.cluster.state_tasks == [worker.task] and not stop_signal:
            self._wait_for_others(session)
        server.exit_process(128 + stop_signal if stop_signal else 0)

    def _wait_for_chief(self, session):
        last_step = self._worker.job.run_length.last_step
        while not session.run(self._num_done):
            if session.run(tf.train.get_global_step()) < last_step:
                server.exit_process(
                    EX_TEMPFAIL, 'the chief has resumed an earlier step: start this task again'
                )
            time.sleep(server.POLL_SECS)

    def _wait_for_others(self, session):
        """Wait until the others have read that the chief has saved."""
        deadline = time.monotonic() + _END_SECS
        num_workers = self._worker.strategy.num_workers
        while session.run(self._num_done) < num_workers and time.monotonic() < deadline:
            time.sleep(server.POLL_SECS)


@contextlib.contextmanager
def restart_after_lost_task():
    """End the process with EX_TEMPFAIL after an error that MonitoredSession does not handle."""
    try:
        yield
    except _PREEMPTION_ERRORS + (RuntimeError,) as error:
        if isinstance(error, RuntimeError) and _NOT_READY not in str(error):
            raise
        server.exit_process(
            EX_TEMPFAIL, f'lost a task ({reason(error)}): this task is to be started again'
        )
