"""What the benchmark measures of the input pipeline and of the training step, each in a process of
its own."""

import contextlib
import time
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, multi_gpu, optimizer
from cifar10.measure import benchmark, classic, processes, profiling
from cifar10.runs import machine, watch


class Steps(NamedTuple):
    """Steps of a measurement."""

    warmup: int  # not measured
    measured: int


def input_figures(formulation, job, steps):
    """Runs the input pipeline alone, with the prefetch queue of a trainer.

    Args:
      formulation: benchmark.OURS or benchmark.BASELINE.
      job: a Job.
      steps: a Steps, in batches.

    Returns:
      A dict of figures.

    Raises:
      UserError: a data file is missing, or changes.
    """
    machine.set_up_tensorflow()
    start = time.perf_counter()
    data_files = watch.Watch(job.data.train)
    with tf.Graph().as_default():
        queue = _prefetch_queue(formulation, job)
        batch = tf.group(*queue.dequeue())
        with data_files.explaining(), tf.Session(
            config=_config(formulation, job, ['/cpu:0'])
        ) as session:
            building = time.perf_counter() - start
            session.run(tf.global_variables_initializer())  # first of all, as a trainer does
            start = time.perf_counter()
            coord = tf.train.Coordinator()
            queue_threads = tf.train.start_queue_runners(session, coord)
            data_files.start(coord)
            session.run(batch)
            first = time.perf_counter() - start
            for _ in range(steps.warmup):
                session.run(batch)
            (cpu, _), start = processes.usage(), time.perf_counter()
            for _ in range(steps.measured):
                session.run(batch)
            seconds, (cpu_after, peak_mb) = time.perf_counter() - start, processes.usage()
            coord.request_stop()
            session.run(queue.close(cancel_pending_enqueues=True))
            coord.join(queue_threads, stop_grace_period_secs=10, ignore_live_threads=True)
    images = steps.measured * job.hparams.batch_size
    return {
        'images/sec': images / seconds,
        'CPU microseconds per image': (cpu_after - cpu) / images * 1e6,
        'seconds to build the graph': building,
        'seconds from the start of the queues to the first batch': first,
        'peak memory, MB': peak_mb,
    }


def _prefetch_queue(formulation, job):
    capacity = 2 * len(job.devices)
    if benchmark.is_ours(formulation):
        images, labels = cifar10_input.distorted_inputs(job.data, job.hparams.batch_size)
        return cifar10_input.prefetch_queue(images, labels, capacity, job.threads.prefetch)
    with tf.device('/cpu:0'):
        images, labels = classic.distorted_inputs(job.data, job.hparams.batch_size)
        return classic.prefetch_queue(images, labels, capacity)


def _config(formulation, job, devices):
    return machine.session_config(devices, job.threads if benchmark.is_ours(formulation) else None)


@contextlib.contextmanager
def _step_session(formulation, job):
    """Yields a session and the train op of a step on batches that stay in memory."""
    machine.set_up_tensorflow()
    rng = np.random.default_rng(0)
    size = job.hparams.batch_size
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = []
        for i, device in enumerate(job.first_devices):
            values = (
                rng.standard_normal([size, 24, 24, 3], np.float32),
                rng.integers(0, job.data.num_classes, size).astype(np.int32),
            )
            with tf.device(device):
                batches.append(
                    [
                        tf.get_variable('%s_%d' % (name, i), initializer=value, trainable=False)
                        for name, value in zip(('images', 'labels'), values)
                    ]
                )
        if benchmark.is_ours(formulation):
            global_step = tf.train.get_or_create_global_step()
            opt = optimizer.create(
                optimizer.learning_rate(global_step, job.pace, job.hparams), job.hparams
            )
            with multi_gpu.variables_on(job.variable_devices):
                _, tower_grads = multi_gpu.tower_gradients(job.devices, batches, opt, job.network)
            gradients = multi_gpu.average_gradients(tower_grads)
            train_op = optimizer.train(opt, gradients, global_step, job.pace, job.hparams)
        else:
            train_op, _, _ = classic.training_step(job, batches)
        with tf.Session(config=_config(formulation, job, job.devices)) as session:
            session.run(tf.global_variables_initializer())
            yield session, train_op


def step_figures(formulation, job, steps):
    """Runs the training step alone: see `input_figures`."""
    with _step_session(formulation, job) as (session, train_op):
        for _ in range(steps.warmup):
            session.run(train_op)
        start = time.perf_counter()
        for _ in range(steps.measured):
            session.run(train_op)
        seconds = (time.perf_counter() - start) / steps.measured
    return {'ms per step': seconds * 1e3, 'images/sec': job.pace.examples_per_step / seconds}


def profile_figures(formulation, job, steps):
    """Traces the training step; returns the milliseconds of its operations, and the Chrome
    trace."""
    with _step_session(formulation, job) as (session, train_op):
        return profiling.trace(session, train_op, steps.warmup, steps.measured)
