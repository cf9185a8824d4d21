"""Measurements of the input pipeline, the training step and its operations."""

import collections
import contextlib
import functools
import re
import statistics
import time
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import hooks, input as input_lib, model, multi_gpu, optimizer, placement
from cifar10.benchmark import processes, reference
from cifar10.system import machine, private_api

OURS, BASELINE = 'ours', 'reference'  # formulations
SUM = 'sum of all operations'  # more than the time of a step: operations run in parallel


class StepCounts(NamedTuple):
    """Numbers of steps of a measurement."""

    warmup: int
    measured: int


def input_metrics(formulation, job, steps):
    """Measure the input pipeline alone, with the prefetch queue of a trainer.

    Args:
      formulation: OURS or BASELINE.
      job: a Job.
      steps: a StepCounts. A step is one batch.

    Returns:
      A dict from metric name to number.

    Raises:
      UserError: a data file is missing or malformed.
    """
    machine.set_up_tensorflow()
    start = time.perf_counter()
    capacity = 2 * len(job.devices)
    inputs_fn, num_threads = reference.distorted_inputs, 1
    if formulation == OURS:
        inputs_fn, num_threads = input_lib.distorted_inputs, job.threads.prefetch
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        images, labels = inputs_fn(job.dataset, job.hparams.batch_size)
        queue = input_lib.prefetch_queue(images, labels, capacity, num_threads)
        batch = tf.group(*queue.dequeue())
        with tf.Session(config=_session_config(formulation, job, ['/cpu:0'])) as session:
            building = time.perf_counter() - start
            session.run(tf.global_variables_initializer())  # before the queues, as in training
            start = time.perf_counter()
            coord = tf.train.Coordinator()
            queue_threads = tf.train.start_queue_runners(session, coord)
            session.run(batch)
            first = time.perf_counter() - start
            for _ in range(steps.warmup):
                session.run(batch)
            (cpu, _), start = processes.resource_usage(), time.perf_counter()
            for _ in range(steps.measured):
                session.run(batch)
            seconds, (cpu_after, peak_mb) = time.perf_counter() - start, processes.resource_usage()
            coord.request_stop()
            coord.join(queue_threads, stop_grace_period_secs=10, ignore_live_threads=True)
    images = steps.measured * job.hparams.batch_size
    return {
        'examples/sec': images / seconds,
        'CPU microseconds per image': (cpu_after - cpu) / images * 1e6,
        'seconds to build the graph': building,
        'seconds from the start of the queues to the first batch': first,
        'peak memory, MB': peak_mb,
    }


def _session_config(formulation, job, devices):
    return machine.session_config(devices, job.threads if formulation == OURS else None)


def _training_step(job, batches):
    """Build towers and update as scripts/cifar10_multi_gpu_train.py does; return the train op."""
    global_step = tf.train.get_or_create_global_step()
    learning_rate = optimizer.learning_rate(global_step, job.run_length, job.hparams)
    opt = optimizer.create(learning_rate, job.hparams)
    with placement.variables_on(job.variable_devices):
        _, tower_grads = multi_gpu.tower_gradients(
            job.devices, batches, opt, job.dataset.num_classes, job.hparams, job.num_sub_batches
        )
    gradients = multi_gpu.average_gradients(tower_grads)
    return optimizer.train_op(opt, gradients, global_step, job.run_length, job.hparams)


@contextlib.contextmanager
def _step_session(formulation, job, warmup):
    """Yield a session after the warm-up, and the train op on batches in memory."""
    machine.set_up_tensorflow()
    rng = np.random.default_rng(0)
    size = job.hparams.batch_size
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = []
        for device in job.first_devices:
            images = rng.standard_normal([size, 24, 24, 3], np.float32)
            labels = rng.integers(0, job.dataset.num_classes, size).astype(np.int32)
            with tf.device(device):
                batches.append([tf.Variable(x, trainable=False) for x in (images, labels)])
        if formulation == OURS:
            train_op = _training_step(job, batches)
        else:
            train_op, _, _ = reference.training_step(job, batches)
        with tf.Session(config=_session_config(formulation, job, job.devices)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(warmup):
                session.run(train_op)
            yield session, train_op


def step_metrics(formulation, job, steps):
    """Measure the training step alone; see `input_metrics`."""
    with _step_session(formulation, job, steps.warmup) as (session, train_op):
        start = time.perf_counter()
        for _ in range(steps.measured):
            session.run(train_op)
        seconds = (time.perf_counter() - start) / steps.measured
    return {
        'ms per step': seconds * 1e3,
        'examples/sec': job.run_length.examples_per_step / seconds,
    }


def profile_metrics(formulation, job, steps):
    """Trace the training step.

    Returns:
      A dict from 'name (type)' of each operation, and SUM, to milliseconds per step; and the last
      step as a Chrome trace in JSON.
    """
    with _step_session(formulation, job, steps.warmup) as (session, train_op):
        op_ms = collections.Counter()
        for _ in range(steps.measured):
            metadata = tf.RunMetadata()
            session.run(train_op, options=hooks.TRACE_OPTIONS, run_metadata=metadata)
            for node in [node for dev in metadata.step_stats.dev_stats for node in dev.node_stats]:
                kind = ''.join(re.findall(r' = (\w+)\(', node.timeline_label)[:1])
                ms = (node.op_end_rel_micros - node.op_start_rel_micros) / 1e3
                for name in (f'{node.node_name} ({kind})', SUM):
                    op_ms[name] += ms / steps.measured
    return dict(op_ms), hooks.chrome_trace(metadata)


@functools.lru_cache(maxsize=None)
def layer_flops(batch_size, num_classes=model.NUM_CLASSES):
    """Count the floating-point operations per step of one tower, with TensorFlow's statistics.

    A product of [m, k] and [k, n] takes 2 m k n operations. A convolution is a product with one row
    per position of each example. Products with the padding count, although kernels may skip them.
    Pooling, normalization and update do not count.

    Args:
      batch_size: examples per step.
      num_classes: the number of classes.

    Returns:
      A dict from layer to a list of the operations of each product, forward and backward.
    """
    with tf.Graph().as_default() as graph:
        size = input_lib.IMAGE_SIZE
        images = tf.zeros([batch_size, size, size, 3])
        logits = model.inference(images, num_classes, is_tuned=False)
        tf.gradients(model.loss(logits, tf.zeros([batch_size], tf.int32)), tf.trainable_variables())
    products = [
        op
        for op in graph.get_operations()
        if re.search('Conv2D|MatMul', op.type)
        # A step does not compute the gradient of the images.
        and not op.name.endswith('/conv1/Conv2D_grad/Conv2DBackpropInput')
    ]
    return {
        layer: [
            private_api.get_stats_for_node_def(graph, op.node_def, 'flops').value
            for op in products
            if layer in op.name.split('/')
        ]
        for layer in placement.LAYERS
    }


def step_flops(batch_size, num_classes=model.NUM_CLASSES):
    """Return the sum of `layer_flops`."""
    return sum(sum(flops) for flops in layer_flops(batch_size, num_classes).values())


def matmul_flops_per_sec(device, size=4096, num_repeats=5):
    """Return the median FLOP/s of a float32 matrix product of size x size on a device.

    On recent GPUs TensorFlow rounds the factors to TF32, as in the network.
    """
    with tf.Graph().as_default(), tf.device(device):
        factors = [tf.Variable(tf.random_normal([size, size])) for _ in range(2)]
        product = tf.matmul(*factors).op
        seconds = []
        with tf.Session(config=machine.session_config([device])) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(num_repeats + 1):
                start = time.perf_counter()
                session.run(product)
                seconds.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(seconds[1:])
