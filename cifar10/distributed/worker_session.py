"""Training session of a worker: start, recovery, comparison with the chief, end."""

import contextlib
import dataclasses
import time
from typing import NamedTuple, Optional, Sequence
import zlib

import tensorflow.compat.v1 as tf

from cifar10 import training
from cifar10.data import verification
from cifar10.distributed import allreduce, server
from cifar10.distributed.cluster import EX_TEMPFAIL, Cluster, Strategy, Task
from cifar10.errors import UserError, reason
from cifar10.runs import checkpoint
from cifar10.system import signals

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


class Update(NamedTuple):
    """A worker's operations for an update in one of the modes."""

    train_op: tf.Operation
    gradients: Sequence[tuple]  # (gradient, variable), for the summaries
    chief_init_op: Optional[tf.Operation] = None  # runs in the chief, after the start of a session
    worker_init_op: Optional[tf.Operation] = None  # runs after that, in all workers
    hooks: Sequence[tf.train.SessionRunHook] = ()
    summaries: Sequence[tf.Tensor] = ()  # additional ones
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
        is_running = self._restored_path or is_chief and self._sessions > 1
        if is_running and worker.strategy.mode == 'async':
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
        if run and self._sessions > 1:
            path = checkpoint.latest_checkpoint(run.directory)
        if path:
            print(f'Resuming from {path}, step {path.rsplit("-", 1)[1]}')
        return path


class _JoinHook(tf.train.SessionRunHook):
    """Hook that initializes what the workers share, and compares flags and data with the chief's.

    It also reports each step to the watchdog.
    """

    def __init__(self, worker, worker_update):
        self._worker, self._update = worker, worker_update
        names_and_values = _configuration(worker)
        self._names = list(names_and_values)
        # Checksums: TensorFlow reduces no strings, and a checksum is exact in float64.
        self._own = [float(zlib.crc32(repr(v).encode())) for v in names_and_values.values()]

    def begin(self):
        """Add the chief's configuration to the graph."""
        own = tf.constant(self._own, tf.float64)
        if not self._worker.cluster.ps_hosts:
            self._chiefs = allreduce.broadcast(self._worker, own)
            return
        with tf.device(self._worker.cluster.ps_tasks[0].device):
            self._chiefs = tf.Variable(
                own, trainable=False, collections=[], name='chiefs_configuration'
            )
        self._is_written = tf.is_variable_initialized(self._chiefs)

    def after_create_session(self, session, coord):
        """Initialize, and compare; the others wait for the chief.

        Raises:
          UserError: a flag or the data differ.
        """
        is_chief, has_servers = self._worker.task.is_chief, self._worker.cluster.ps_hosts
        if has_servers and is_chief:
            if self._update.chief_init_op is not None:
                session.run(self._update.chief_init_op)
            session.run(self._chiefs.initializer)
        while has_servers and not session.run(self._is_written):
            time.sleep(server.POLL_SECS)
        for name, own, chiefs in zip(self._names, self._own, session.run(self._chiefs)):
            if own != chiefs:
                raise UserError(
                    f'{self._worker.task} has another {name} than the chief',
                    'give all workers the same flags and data',
                )
        if self._update.worker_init_op is not None:
            session.run(self._update.worker_init_op)

    def after_run(self, run_context, run_values):
        """Report the step."""
        self._worker.watchdog.report_progress()


def _configuration(worker):
    """Return a dict of the values that must be equal for all workers."""
    job = worker.job
    return dict(
        dataclasses.asdict(job.hparams),
        num_gpus=len(job.devices),
        max_steps=job.settings.max_steps,
        seed=job.settings.seed,
        deterministic=job.settings.deterministic,
        training_data=verification.total_checksum(job.dataset.train),
        class_names=job.dataset.class_names,
        **worker.strategy._asdict(),
    )


class _EndHook(tf.train.SessionRunHook):
    """Hook that ends the process when the chief has saved the last checkpoint.

    It is the last one in the list. A session with a lost peer, or with the thread of
    SyncReplicasOptimizer, does not close.
    """

    def __init__(self, worker, worker_update, stop_request, finish):
        """Make the hook; `finish` is a function that the chief calls before its end."""
        self._worker, self._update = worker, worker_update
        self._stop_request, self._finish = stop_request, finish

    def begin(self):
        """Add the operations for the end to the graph."""
        index = tf.constant(self._worker.task.index, tf.int64)
        queues = [server.done_queue(task) for task in self._worker.cluster.state_tasks]
        self._num_done = queues[0].size()
        self._end_op = tf.group(*(queue.enqueue(index) for queue in queues))

    def end(self, session):
        """Tell the others, or wait for the chief, and end the process."""
        worker, stop_signal = self._worker, self._stop_request.received_signal
        if not worker.task.is_chief:
            self._wait_for_chief(session)
        if not stop_signal:
            if self._update.last_op is not None:
                session.run(self._update.last_op)
            session.run(self._end_op)
        worker.watchdog.stop()
        self._finish()
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
def session(worker, run, step, saver, queue, worker_update):
    """Yield the training session of a worker; the process ends at the end of the block.

    Args:
      worker: a Worker.
      run: the Run of the chief; None for the other workers, which write no files.
      step: a training.Step.
      saver: a tf.train.Saver.
      queue: the prefetch queue.
      worker_update: an Update.

    Raises:
      UserError: see training.session.
    """
    stop_request = signals.StopRequest()
    creator = SessionCreator(worker, saver, run)
    session_hooks, finish = training.hooks_and_finish(
        worker.job, run, step, saver, queue, stop_request
    )
    session_hooks = [
        _JoinHook(worker, worker_update),
        *worker_update.hooks,
        *session_hooks,
        _EndHook(worker, worker_update, stop_request, finish),
    ]
    # Workers that are not the chief have nothing to save: a signal ends them immediately.
    with training.translate_divergence(
        run
    ), stop_request if run else contextlib.nullcontext(), _restart_after_lost_task(), tf.train.MonitoredSession(
        creator, session_hooks, stop_grace_period_secs=1
    ) as monitored:
        yield monitored


@contextlib.contextmanager
def _restart_after_lost_task():
    """End the process with EX_TEMPFAIL after an error that MonitoredSession does not handle."""
    try:
        yield
    except _PREEMPTION_ERRORS + (RuntimeError,) as error:
        if isinstance(error, RuntimeError) and _NOT_READY not in str(error):
            raise
        server.exit_process(
            EX_TEMPFAIL, f'lost a task ({reason(error)}): this task is to be started again'
        )
