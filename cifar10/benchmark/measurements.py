"""Measurements of the input pipeline and of the training step in one process."""

import statistics
import time
from typing import NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, input as input_lib, multi_gpu, optimizer
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

    Raises:
      UserError: a data file is missing or malformed.
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


def step_flops(network, batch_size):
    """Return the floating-point operations of the products and convolutions of a step of a tower.

    A product of [m, k] and [k, n] takes 2 m k n operations. A convolution is a product with one row
    per position of each example, and so are its gradients. Products with the padding count,
    although kernels may skip them.

    Args:
      network: a Network.
      batch_size: examples per tower.
    """
    size = [batch_size, IMAGE_SIZE, IMAGE_SIZE, DEPTH]
    with tf.Graph().as_default() as graph, cpu_kernels.portable():
        whole = network._replace(num_sub_batches=1)
        logits = whole.inference(tf.placeholder(tf.float32, size), is_training=True)
        gradients = tf.gradients(logits, tf.trainable_variables())
        needed = [tensor.op.name for tensor in [logits, *gradients] if tensor is not None]
        nodes = tf.graph_util.extract_sub_graph(graph.as_graph_def(), needed).node
    return sum(_flops(graph.get_operation_by_name(node.name)) for node in nodes)


def _flops(op):
    """Return the floating-point operations of a product or convolution, else 0."""
    shapes = [tensor.shape for tensor in [*op.inputs, *op.outputs]]
    if op.type == 'MatMul':
        rows = shapes[0][0 if op.get_attr('transpose_a') else 1]
        return 2 * int(rows) * shapes[2].num_elements()
    if not op.type.startswith('Conv2D'):
        return 0
    # Tensors with positions (small side), and the kernel, of the convolution or its gradients
    positions, kernel = {
        'Conv2D': (shapes[-1], shapes[1]),
        'Conv2DBackpropInput': (shapes[2], shapes[1]),
        'Conv2DBackpropFilter': (shapes[2], shapes[-1]),
    }[op.type]
    return 2 * positions[:3].num_elements() * kernel.num_elements()


def matmul_flops_per_sec(device, size=4096, num_repeats=5):
    """Return the median FLOP/s of float32 products of size x size matrices on a device.

    On recent GPUs TensorFlow rounds the factors to TF32, as in the network.
    """
    # session.run itself takes up to 1 ms. On an NVIDIA H100, 64 products take more than 20 ms.
    num_products = 64 if machine.is_gpu(device) else 1
    with tf.Graph().as_default(), tf.device(device):
        # With this standard deviation the products have it, too, and do not overflow.
        product, factor = [
            tf.Variable(tf.random_normal([size, size], stddev=size**-0.5)) for _ in range(2)
        ]
        for _ in range(num_products):
            product = tf.matmul(product, factor)
        with tf.Session(config=machine.session_config([device])) as session:
            session.run(tf.global_variables_initializer())
            _run(session, product.op, 1)
            seconds = [_run(session, product.op, 1)[0] for _ in range(num_repeats)]
    return num_products * 2 * size**3 / statistics.median(seconds)
