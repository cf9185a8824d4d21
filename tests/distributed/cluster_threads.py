"""A cluster in one process: servers, and a thread per worker, which train two variables.

The gradient of worker i is SCALES[i] * value + SHIFTS[i], so that it depends on the weights which
the worker has read. The initial value of worker i is `initial(name, i)`.
"""

from concurrent import futures
import dataclasses
import json
import os
import pickle
import signal
import sys
import traceback
from types import SimpleNamespace

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import optimizer, training
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.distributed import launcher, server
from cifar10.distributed.cluster import Cluster, Strategy
from cifar10.errors import UserError
from cifar10.scripts.cifar10_distributed_train import MODES, worker_session
from cifar10.system import machine
from tests.helpers import forks

DEADLINE_SECS = 60
SHAPES = {'conv/weights': (6, 4), 'softmax_linear/weights': (4, 5), 'softmax_linear/biases': (5,)}
SCALES, SHIFTS = (0.5, -0.25, 2.0), (1.0, 3.0, -2.0)
HPARAMS = {
    'classic': dataclasses.replace(CLASSIC, moving_average_decay=0.3),
    'faster': dataclasses.replace(CLASSIC, initial_learning_rate=0.2),
    'momentum': dataclasses.replace(CLASSIC, moving_average_decay=0.3, optimizer='momentum'),
    'fast': dataclasses.replace(FAST, moving_average_decay=0.3, moving_average_fraction=0.0),
}


def initial(name, index=0):
    """Return the initial value of a variable in a worker."""
    return np.random.RandomState(len(name) + index).randn(*SHAPES[name]).astype(np.float32)


def job(data_dir, strategy, recipe='classic', num_towers=1, **settings):
    """Return the Job of a worker."""
    return training.create_job(
        dataset.read(data_dir),
        HPARAMS[recipe],
        [f'/cpu:{i}' for i in range(num_towers)],
        RunSettings(**settings),
        batches_per_tower=strategy.batches_per_tower,
    )


def optimizer_of(job):
    """Return the optimizer of a Job in the default graph."""
    step = tf.train.get_or_create_global_step()
    return optimizer.create(optimizer.learning_rate(step, job.run_length, job.hparams), job.hparams)


def run(tmp_path, data_dir, turns, mode, num_ps=1, num_workers=2, jobs=(), **options):
    """Train in a process; return the values by name after each turn, or the text of a UserError.

    Each worker has its own values in the modes average and allreduce: a list of dicts per turn.

    Args:
      turns: list of turns: a list of workers that make a step at the same time; 'save' for a
        checkpoint; 'restart' for another session of the chief, which can restore it.
      jobs: list of dicts with arguments of `job`, for the first workers.
      options: fields of Strategy.
    """
    path = str(tmp_path / 'values')
    strategy = dict(options, mode=mode, num_workers=num_workers)
    jobs = [dict({'data_dir': data_dir}, **own) for own in jobs]
    jobs += [dict({'data_dir': data_dir}, **(jobs or [{}])[0])] * (num_workers - len(jobs))
    process = forks.Process([__file__, json.dumps([turns, num_ps, strategy, jobs, path])])
    stdout, stderr = process.communicate()
    if process.returncode == 1:
        return stderr.splitlines()[-1]
    assert process.returncode == 0, stdout + stderr
    with open(path, 'rb') as file:
        values = pickle.load(file)
    return values if Strategy(**strategy).owns_variables else [turn[0] for turn in values]


class _Worker:
    """A worker's graph and session."""

    def __init__(self, worker, checkpoint_path=None):
        mode, index = MODES[worker.strategy.mode], worker.task.index
        worker_session.compare_with_chief(worker)
        device = (
            worker.task.device
            if worker.strategy.owns_variables
            else server.device_setter(worker.cluster, worker.task)
        )
        with tf.Graph().as_default() as self._graph, tf.device(device):
            opt = optimizer_of(worker.job)
            with mode.variable_scope(worker):
                read = [
                    tf.get_variable(
                        name, shape, initializer=tf.constant_initializer(initial(name, index))
                    )
                    for name, shape in SHAPES.items()
                ]
            gradients = [(SCALES[index] * v.read_value() + SHIFTS[index], v) for v in read]
            self._ops = mode.worker_ops(worker, opt, gradients)
            self._variables = {v.op.name: v for v in tf.global_variables()}
            self._saver = tf.train.Saver(save_relative_paths=True)
            # Of a run that has only the checkpoint of step 0, an asynchronous chief restores none.
            restored_path = None if worker.strategy.mode == 'async' else checkpoint_path
            run = SimpleNamespace(
                restored_path=lambda unused_saver: restored_path,
                saved_step=0,
                initial_weights=None,
                directory=str(checkpoint_path and os.path.dirname(checkpoint_path)),
            )
            creator = worker_session.SessionCreator(
                worker, self._saver, run if worker.task.is_chief else None
            )
            self._session = tf.train.MonitoredSession(creator, self._ops.hooks)
        self._plain, self._summaries = self._session._tf_sess(), []

    def step(self):
        """Make a step, as the training loop, and keep the summaries."""
        with self._graph.as_default():
            summaries = tf.get_collection(tf.GraphKeys.SUMMARIES)
            _, self._summaries = self._session.run([self._ops.train_op, summaries])

    def values(self):
        """Return all variables by name, and the summaries of the last step by tag."""
        values = [v for text in self._summaries for v in tf.Summary.FromString(text).value]
        return dict(self._plain.run(self._variables), **{v.tag: v.simple_value for v in values})

    def save(self, path):
        """Save a checkpoint."""
        with self._graph.as_default():
            self._saver.save(self._plain, path, write_meta_graph=False)


def _make_workers(num_ps, strategy, jobs):
    hosts = [f'localhost:{port}' for port in launcher.free_ports(num_ps + len(jobs))]
    cluster = Cluster(tuple(hosts[:num_ps]), tuple(hosts[num_ps:]))
    config = tf.ConfigProto(inter_op_parallelism_threads=2)
    targets = {
        task: server.start(cluster, task, config)
        for task in cluster.ps_tasks + cluster.worker_tasks
    }
    watchdog = SimpleNamespace(report_progress=lambda: None)
    return [
        worker_session.Worker(
            cluster, task, strategy, job(strategy=strategy, **own), targets[task], watchdog
        )
        for task, own in zip(cluster.worker_tasks, jobs)
    ]


def _main(turns, num_ps, strategy, jobs, path):
    made = _make_workers(num_ps, Strategy(**strategy), jobs)
    owns_variables, recorded = made[0].strategy.owns_variables, []
    pool = futures.ThreadPoolExecutor(len(made))  # not closed: after an error, others may wait
    starts = [pool.submit(_Worker, worker) for worker in made[::-1]]
    for start in futures.as_completed(starts):
        if start.exception():
            raise start.exception()
    workers = [start.result() for start in starts[::-1]]
    for turn in turns:
        before = workers[0].values()
        if turn == 'save':
            workers[0].save(os.path.join(os.path.dirname(path), 'model.ckpt-1'))
        elif turn == 'restart':
            workers[0] = _Worker(made[0], os.path.join(os.path.dirname(path), 'model.ckpt-1'))
        else:
            list(pool.map(lambda index: workers[index].step(), turn))
        while strategy['mode'] == 'sync' and _lacks_averages(before, workers[0].values()):
            pass
        # What is shared, with the summaries of the worker that has made the step
        shown = workers if owns_variables or turn in ('save', 'restart') else [workers[turn[0]]]
        recorded.append([worker.values() for worker in shown])
    with open(path, 'wb') as file:
        pickle.dump(recorded, file)


def _lacks_averages(before, values):
    """Return True if weights are updated, but not yet all of their moving averages.

    SyncReplicasOptimizer lets the workers continue first.
    """
    return values['global_step'] > before['global_step'] and any(
        (values[name] == before[name]).any()
        for name in values
        if name.endswith('/ExponentialMovingAverage')
    )


if __name__ == '__main__':
    signal.alarm(DEADLINE_SECS)
    machine.set_up_tensorflow()
    status = 0
    try:
        _main(*json.loads(sys.argv[1]))
    except UserError as error:
        print(f'UserError: {error}', file=sys.stderr, flush=True)
        status = 1
    except BaseException:
        traceback.print_exc()
        status = 2
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
