#!/usr/bin/env python3
"""Measures the input pipeline, the training step, whole training and its towers, here and in the classic formulation.

Every figure comes from a process of its own, after a warm-up that does not count; tables show median (least to greatest).

  cifar10_benchmark.py input     batches out of the input pipeline alone
  cifar10_benchmark.py step      the training step on batches that stay in memory
  cifar10_benchmark.py train     the training script from end to end, summaries and checkpoints in
  cifar10_benchmark.py towers    one tower with the whole batch, two with half of it, four with a quarter
  cifar10_benchmark.py profile   the most expensive operations of a step, and a Chrome trace
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

import contextlib
import math
import os
import sys
import tempfile
import time

from absl import flags
import numpy as np

from cifar10 import errors, input as cifar10_input, multi_gpu, optimizer
from cifar10.cli import program as command_line
from cifar10.measure import benchmark, flops, profiling
from cifar10.measure.benchmark import CLASSIC, OURS
from cifar10.hparams import CLASSIC as HPARAMS
from cifar10.measure import classic as cifar10_classic
import tensorflow.compat.v1 as tf  # after cifar10, which keeps its import quiet

FLAGS = flags.FLAGS

_NUM_EXAMPLES = 50000  # of an epoch, for the learning rate of steps on batches in memory


def input_figures(formulation, data_dir, batch_size, num_towers, chosen, warmup_steps, steps):
    """Runs the input pipeline alone, as far as a trainer of `num_towers` would prefetch."""
    command_line.use_graph_mode()
    start = time.perf_counter()
    with tf.Graph().as_default():
        capacity = 2 * num_towers
        if formulation == OURS:
            queue = cifar10_input.prefetch_queue(*cifar10_input.distorted_inputs(data_dir, batch_size), capacity, chosen.input)
        else:
            with tf.device('/cpu:0'):
                queue = cifar10_classic.prefetch_queue(*cifar10_classic.distorted_inputs(data_dir, batch_size), capacity)
        batch = tf.group(*queue.dequeue())
        with tf.Session(config=_config(formulation, ['/cpu:0'], chosen)) as session:
            building = time.perf_counter() - start
            session.run(tf.global_variables_initializer())  # first of all, as a trainer does
            start = time.perf_counter()
            coord = tf.train.Coordinator()
            queue_threads = tf.train.start_queue_runners(session, coord)
            session.run(batch)
            first = time.perf_counter() - start
            for _ in range(warmup_steps):
                session.run(batch)
            (cpu, _), start = benchmark.usage(), time.perf_counter()
            for _ in range(steps):
                session.run(batch)
            seconds, (cpu_after, peak_mb) = time.perf_counter() - start, benchmark.usage()
            coord.request_stop()
            session.run(queue.close(cancel_pending_enqueues=True))
            coord.join(queue_threads, stop_grace_period_secs=10, ignore_live_threads=True)
    images = steps * batch_size
    return {'images/sec': images / seconds, 'CPU microseconds an image': (cpu_after - cpu) / images * 1e6,
            'seconds to build the graph': building, 'seconds from the start of the queues to the first batch': first,
            'peak memory, MB': peak_mb}


@contextlib.contextmanager
def step_session(formulation, devices, batch_size, chosen):
    """Yields a session and the train op of a step on batches that stay in memory."""
    command_line.use_graph_mode()
    rng = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        batches = []
        for i, device in enumerate(devices):
            values = rng.standard_normal([batch_size, 24, 24, 3], np.float32), rng.integers(0, 10, batch_size).astype(np.int32)
            with tf.device(device):
                batches.append([tf.get_variable('%s_%d' % (name, i), initializer=value, trainable=False)
                                for name, value in zip(('images', 'labels'), values)])
        if formulation == OURS:
            global_step = tf.train.get_or_create_global_step()
            rate = optimizer.learning_rate(global_step, batch_size * len(devices), _NUM_EXAMPLES, HPARAMS)
            sgd = tf.train.GradientDescentOptimizer(rate)
            _, tower_grads = multi_gpu.tower_gradients(devices, batches, sgd, chosen.slices)
            train_op = optimizer.train(sgd, multi_gpu.average_gradients(tower_grads), global_step, HPARAMS, math.inf)
        else:
            train_op, _, _ = cifar10_classic.training_step(devices, batches, _NUM_EXAMPLES)
        with tf.Session(config=_config(formulation, devices, chosen)) as session:
            session.run(tf.global_variables_initializer())
            yield session, train_op


def _config(formulation, devices, chosen):
    return multi_gpu.session_config(devices, chosen if formulation == OURS else None)


def step_figures(formulation, devices, batch_size, chosen, warmup_steps, steps):
    """Runs the training step alone."""
    with step_session(formulation, devices, batch_size, chosen) as (session, train_op):
        for _ in range(warmup_steps):
            session.run(train_op)
        start = time.perf_counter()
        for _ in range(steps):
            session.run(train_op)
        seconds = (time.perf_counter() - start) / steps
    return {'ms a step': seconds * 1e3, 'images/sec': batch_size * len(devices) / seconds}


def train_figures(formulation, data_dir, warmup_steps, steps):
    """Runs the script of the formulation, and takes the times from its log lines."""
    scripts = os.path.dirname(os.path.realpath(__file__))
    script = {OURS: 'cifar10_multi_gpu_train.py', CLASSIC: 'cifar10_classic.py'}[formulation]
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, os.path.join(scripts, script), '--dataset=' + FLAGS.dataset, '--data_dir=' + data_dir,
                   '--train_dir=' + directory, '--num_gpus=%d' % FLAGS.num_gpus, '--batch_size=%d' % FLAGS.batch_size,
                   '--max_steps=%d' % (warmup_steps + steps), '--log_frequency=%d' % math.gcd(10, warmup_steps, steps),
                   '--summary_steps=100', '--checkpoint_steps=%d' % min(1000, steps)]
        if formulation == OURS:
            command += ['--%s=%d' % (name, FLAGS[name].value) for name in command_line.THREAD_FLAGS]
        seconds, peak_mb = benchmark.run_trainer(command, warmup_steps, warmup_steps + steps)
    images_per_sec = steps * FLAGS.batch_size * FLAGS.num_gpus / seconds
    return {'ms a step': seconds / steps * 1e3, 'images/sec': images_per_sec, 'peak memory, MB': peak_mb}


def _with_limit(figures, devices):
    """Adds the share of the machine's limit, which is measured anew."""
    rate = sum(count for _, _, count in flops.step_flops(FLAGS.batch_size)) * len(devices) / (figures['ms a step'] / 1e3)
    num_units = len(set(devices)) if 'gpu' in devices[0] else 1  # CPU devices share the cores
    limit = num_units * benchmark.fresh_process(flops.matrix_product_rate, devices[0])
    return dict(figures, **{'GFLOP/s': rate / 1e9, 'matrix product, GFLOP/s': limit / 1e9, 'share of the matrix product': rate / limit})


def _step(formulation, devices, batch_size):
    return benchmark.fresh_process(step_figures, formulation, devices, batch_size, command_line.choose_threads(devices, batch_size),
                                   FLAGS.warmup_steps or 10, FLAGS.steps or 100)


def _measure_input(formulation, data_dir, devices):
    figures = benchmark.fresh_process(
        input_figures, formulation, data_dir, FLAGS.batch_size, len(devices),
        command_line.choose_threads(devices, FLAGS.batch_size), FLAGS.warmup_steps or 100, FLAGS.steps or 500)
    figures['images/sec that the step takes'] = _step(formulation, devices, FLAGS.batch_size)['images/sec']
    return figures


def _measure_step(formulation, unused_data_dir, devices):
    return _with_limit(_step(formulation, devices, FLAGS.batch_size), devices)


def _measure_train(formulation, data_dir, devices):
    return _with_limit(train_figures(formulation, data_dir, FLAGS.warmup_steps or 100, FLAGS.steps or 500), devices)


def _measure_towers(formulation, unused_data_dir, devices):
    figures = {'ms a step, %d x %d' % (n, FLAGS.batch_size // n):
               _step(formulation, [devices[i % len(devices)] for i in range(n)] if 'gpu' in devices[0]
                     else ['/cpu:%d' % i for i in range(n)], FLAGS.batch_size // n)['ms a step'] for n in (1, 2, 4)}
    (_, whole), *parts = figures.items()
    return dict(figures, **{'%s / 1 x %d' % (name, FLAGS.batch_size): ms / whole for name, ms in parts})


def _print_verdict(results, devices):
    made, taken = (benchmark.summarize(values)['median'] for name, values in results[OURS].items() if name.startswith('images/sec'))
    print('The input %s %d tower%s on %s: with the cores to itself it makes %.1f times the images that the step takes.' % (
        'can feed' if made > taken else 'CANNOT feed', len(devices), 's'[len(devices) == 1:], ', '.join(devices), made / taken))


def _print_flops(unused_results, devices):
    print('Floating-point operations of %s: products x 2 x examples x places x inputs x outputs\n%s' % (
        'a step' if len(devices) == 1 else 'a tower and step', flops.table(FLAGS.batch_size)))


def profile_figures(formulation, devices, batch_size, chosen, warmup_steps, steps):
    """Traces the training step; returns its operations' milliseconds and the Chrome trace."""
    with step_session(formulation, devices, batch_size, chosen) as (session, train_op):
        return profiling.trace(session, train_op, warmup_steps, steps)


def _trace_path(formulation):
    return FLAGS.trace if formulation == OURS else '%s.%s' % (FLAGS.trace, formulation)


def _measure_profile(formulation, unused_data_dir, devices):
    figures, trace = benchmark.fresh_process(
        profile_figures, formulation, devices, FLAGS.batch_size, command_line.choose_threads(devices, FLAGS.batch_size),
        FLAGS.warmup_steps or 10, FLAGS.steps or 20)
    benchmark.write(_trace_path(formulation), trace)
    return figures


def _profile_tables(results):
    tables = ['%s, Chrome trace in %s (open it in ui.perfetto.dev)\n\n%s' % (
        formulation, _trace_path(formulation), profiling.table(figures)) for formulation, figures in results.items()]
    sums = {formulation: {profiling.SUM: figures[profiling.SUM]} for formulation, figures in results.items()}
    return '\n\n'.join(tables + [benchmark.table(sums)])


_COMMANDS = {'input': (_measure_input, _print_verdict), 'step': (_measure_step, _print_flops),
             'train': (_measure_train, _print_flops), 'towers': (_measure_towers, lambda results, devices: None),
             'profile': (_measure_profile, lambda results, devices: None)}


def main(command):
    """Measures what the command names."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of the `finally` that end the processes
    for path in [FLAGS.json] * (FLAGS.json is not None) + [FLAGS.trace] * (command == 'profile'):
        benchmark.check_writable(path)
    if command == 'towers' and FLAGS.batch_size % 4:
        raise errors.UserError('--batch_size=%d does not divide by 4, for four towers' % FLAGS.batch_size)
    devices = multi_gpu.tower_devices(FLAGS.num_gpus)
    data_dir = command_line.prepare_data() if command in ('input', 'train') else None
    measure, conclude = _COMMANDS[command]
    results = benchmark.in_turn(lambda formulation: measure(formulation, data_dir, devices),
                                [OURS, CLASSIC] if FLAGS.baseline else [OURS], FLAGS.rounds)
    print('%s\n' % (_profile_tables if command == 'profile' else benchmark.table)(results))
    conclude(results, devices)
    if FLAGS.json is not None:
        flag_values = {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(sys.argv[0])}
        benchmark.write(FLAGS.json, benchmark.report(command, results, flag_values))


if __name__ == '__main__':
    command_line.define_data_flags()
    FLAGS.set_default('dataset', 'synthetic')
    command_line.define_batch_size()
    command_line.define_num_gpus()
    command_line.define_thread_flags()
    flags.DEFINE_boolean('baseline', False, 'Measure the classic formulation in turn with ours.')
    flags.DEFINE_integer('rounds', 5, 'Measure so many times.', lower_bound=1)
    flags.DEFINE_integer('warmup_steps', 0, 'Steps before those that count; 0 takes what suits the subcommand.', lower_bound=0)
    flags.DEFINE_integer('steps', 0, 'Steps of a measurement; 0 takes what suits the subcommand.', lower_bound=0)
    flags.DEFINE_string('json', None, 'Write the figures of every round to this file.')
    flags.DEFINE_string('trace', '/tmp/cifar10_trace.json', 'Where `profile` writes the Chrome trace.')
    flags.adopt_module_key_flags(command_line)
    command_line.run(main, tuple(_COMMANDS))
