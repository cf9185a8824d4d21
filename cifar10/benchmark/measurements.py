"""Measurements of the input pipeline and of the training step in one process."""

import time
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib, multi_gpu, optimizer
from cifar10.benchmark import reference
from cifar10.config import DEPTH, IMAGE_SIZE
from cifar10.system import machine

OURS, BASELINE = 'ours', 'reference'  # formulations


class StepCounts(NamedTuple):
    """Numbers of steps of a measurement."""

    warmup: int
    measured: int


def _run(session, op, num_steps):
    """Run an operation; return the seconds, and the seconds of CPU time of this process."""
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(num_steps):
        session.run(op)
    return time.perf_counter() - start, time.process_time() - cpu_start


def _session_config(formulation, job, devices):
    return machine.session_config(devices, job.resources.threads if formulation == OURS else None)


def input_metrics(formulation, job, steps):
    """Measure the input pipeline alone, with the prefetch queue of a trainer.

    Args:
      formulation: OURS or BASELINE.
      job: a Job.
      steps: a StepCounts. A step is one batch.

    Returns:
      A dict from metric name to number.
    """
    machine.set_up_tensorflow()
    start = time.perf_counter()
    inputs_fn, num_threads = reference.distorted_inputs, 1
    if formulation == OURS:
        inputs_fn, num_threads = input_lib.distorted_inputs, job.resources.threads.prefetch
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        images, labels = inputs_fn(job.dataset, job.hparams.batch_size)
        queue = input_lib.prefetch_queue(images, labels, 2 * job.num_towers, num_threads)
        batch = tf.group(*queue.dequeue())
        config = _session_config(formulation, job, ['/cpu:0'])
        with tf.train.SingularMonitoredSession(config=config) as monitored:
            session = monitored.raw_session()  # runs no hooks
            session.run(batch)
            first_secs = time.perf_counter() - start
            _run(session, batch, steps.warmup)
            seconds, cpu_secs = _run(session, batch, steps.measured)
    num_images = steps.measured * job.hparams.batch_size
    return {
        'examples/sec': num_images / seconds,
        'CPU microseconds per image': cpu_secs / num_images * 1e6,
        'seconds to the first batch': first_secs,
    }


def training_step(formulation, job, batches):
    """Build towers and update as the training script of the formulation; return the train op."""
    if formulation == BASELINE:
        return reference.training_step(job, batches)
    global_step = tf.train.get_or_create_global_step()
    learning_rate = optimizer.learning_rate(global_step, job.run_length, job.hparams)
    opt = optimizer.create(learning_rate, job.hparams)
    with multi_gpu.variables_on(job.resources.variable_device):
        _, tower_grads = multi_gpu.tower_gradients(job.resources.devices, batches, opt, job.network)
    gradients = multi_gpu.average_gradients(tower_grads)
    return optimizer.train_op(opt, gradients, global_step, job.run_length, job.hparams)


def step_metrics(formulation, job, steps):
    """Measure the training step alone, on batches in memory; see `input_metrics`."""
    machine.set_up_tensorflow()
    rng = np.random.default_rng(0)
    size = job.hparams.batch_size
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = []
        for device in job.resources.devices:
            images = rng.standard_normal([size, IMAGE_SIZE, IMAGE_SIZE, DEPTH], np.float32)
            labels = rng.integers(0, job.dataset.num_classes, size).astype(np.int32)
            with tf.device(device):
                batches.append([tf.Variable(x, trainable=False) for x in (images, labels)])
        train_op = training_step(formulation, job, batches)
        with tf.Session(config=_session_config(formulation, job, job.resources.devices)) as session:
            session.run(tf.global_variables_initializer())
            _run(session, train_op, steps.warmup)
            seconds, _ = _run(session, train_op, steps.measured)
    return {
        'ms per step': seconds / steps.measured * 1e3,
        'examples/sec': steps.measured * job.run_length.examples_per_step / seconds,
    }
