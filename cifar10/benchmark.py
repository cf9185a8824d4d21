"""Measuring: a process of its own for every figure, rounds in turn, medians, spreads and ratios, tables, JSON."""
import concurrent.futures
import datetime
import json
import multiprocessing
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, threads
from cifar10.errors import UserError

OURS, CLASSIC = 'ours', 'classic'
_STEP_LINE = re.compile(r'^(\S+ \S+): step (\d+), ')


def fresh_process(function, *args):
    """Returns function(*args), called in a new process, in which nothing is warm and whose memory is its own.

    Raises:
      UserError: the process died.
    """
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context('spawn')) as pool:
        try:
            return pool.submit(function, *args).result()
        except concurrent.futures.process.BrokenProcessPool:
            raise UserError('The process that measures was killed: make sure that there is enough memory')


def usage():
    """The CPU seconds that this process has taken, user and system, and its peak memory in MB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, _peak_mb(used)


def run_trainer(command):
    """Runs a training script to its end.

    Args:
      command: list of strings.

    Returns:
      A dict from step to the time that its log line bears, and the peak memory of the process in MB.

    Raises:
      UserError: it failed; why stands on stderr.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True) as process:
        times = {int(match.group(2)): datetime.datetime.fromisoformat(match.group(1))
                 for match in map(_STEP_LINE.match, process.stdout) if match}
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    if status:
        raise UserError('%s failed' % os.path.basename(command[1]))
    return times, _peak_mb(used)


def _peak_mb(used):
    return used.ru_maxrss / (2 ** 20 if sys.platform == 'darwin' else 2 ** 10)


def in_turn(measure, formulations, num_rounds):
    """Calls `measure` of each formulation in turn, round after round.

    Args:
      measure: takes a formulation's name, returns a dict of figures.
      formulations: names.
      num_rounds: how often.

    Returns:
      A dict from formulation to a dict from the figure's name to its values, one a round.
    """
    rounds = {formulation: [] for formulation in formulations}
    for i in range(num_rounds):
        for formulation in formulations:
            print('Round %d of %d: %s' % (i + 1, num_rounds, formulation), file=sys.stderr, flush=True)
            rounds[formulation].append(measure(formulation))
    return {formulation: {name: [figures[name] for figures in measured] for name in measured[0]}
            for formulation, measured in rounds.items()}


def summarize(values):
    """Median and extremes."""
    return {'median': statistics.median(values), 'min': min(values), 'max': max(values)}


def ratios(results):
    """For each figure of both the ratio of ours to the classic formulation's, round by round."""
    baseline = results.get(CLASSIC, {})
    return {name: [ours / classic for ours, classic in zip(values, baseline[name])]
            for name, values in results[OURS].items() if all(baseline.get(name, [0]))}


def table(results):
    """The results as a table in Markdown: median (least to greatest)."""
    def cell(values):
        summary = summarize(values)
        return '%s (%s to %s)' % tuple(_digits(summary[key]) for key in ('median', 'min', 'max'))
    columns = dict(results)
    if CLASSIC in results:
        columns['ours / classic'] = ratios(results)
    lines = [[''] + list(columns)] + [[name] + [cell(column[name]) for column in columns.values()] for name in results[OURS]]
    lines.insert(1, ['---'] * len(lines[0]))
    return '\n'.join('| %s |' % ' | '.join(line) for line in lines)


def _digits(value):
    """Three significant digits, and all that stand before the point."""
    return '%.0f' % value if value >= 100 else '%.3g' % value


def host():
    """What measured: processor, cores, GPUs, versions."""
    processor = platform.processor()
    if os.path.exists('/proc/cpuinfo'):
        with open('/proc/cpuinfo') as info:
            names = [line.split(':')[1].strip() for line in info if line.startswith('model name')]
        processor = names[0] if names else processor
    return {'processor': processor, 'cores': threads.num_cores(), 'system': platform.platform(),
            'gpus': [tf.config.experimental.get_device_details(gpu).get('device_name', gpu.name)
                     for gpu in tf.config.list_physical_devices('GPU')],
            'python': platform.python_version(), 'tensorflow': tf.__version__, 'numpy': np.__version__}


def check_writable(path):
    """Raises UserError if no file can be written at `path`, before anything is measured in vain."""
    directory = os.path.dirname(path) or '.'
    if os.path.isdir(path) or not (os.path.isdir(directory) and os.access(directory, os.W_OK)):
        raise UserError('Cannot write %s: name a file in a directory that exists and can be written to' % path)


def write_json(path, subcommand, results, flag_values):
    """Writes the figures of every round, their summaries, host, versions and flags.

    Raises:
      UserError: the file cannot be written.
    """
    report = {
        'subcommand': subcommand, 'time': time.strftime('%Y-%m-%dT%H:%M:%S%z'), 'host': host(), 'flags': flag_values,
        'rounds': results,
        'summary': {formulation: {name: summarize(values) for name, values in figures.items()}
                    for formulation, figures in results.items()},
        'ratios': {name: summarize(values) for name, values in ratios(results).items()}}
    try:
        with open(path + '.new', 'w') as new:
            json.dump(report, new, indent=1)
        os.replace(path + '.new', path)
    except OSError as error:
        raise UserError('Cannot write %s (%s): give another --json' % (path, error.strerror))


def step_flops(batch_size):
    """The floating-point operations of a training step: those of its matrix products and convolutions.

    A product of [m, k] and [k, n] takes 2 m k n: a multiplication and an addition for each term. A convolution is one with a
    row for each place of each example. The gradients of the weights and of the input take as many again each; the images
    have no gradient. The rest (pooling, normalisation, update) is about one percent of it.

    Returns:
      A list of (layer, terms of its product, operations).
    """
    size = cifar10_input.IMAGE_SIZE
    layers = [('conv1', size ** 2, 5 * 5 * 3, 64, 2), ('conv2', (size // 2) ** 2, 5 * 5 * 64, 64, 3),
              ('local3', 1, (size // 4) ** 2 * 64, 384, 3), ('local4', 1, 384, 192, 3), ('softmax_linear', 1, 192, 10, 3)]
    return [(name, '%d x 2 x %d x %d x %d x %d' % (products, batch_size, places, inputs, outputs),
             products * 2 * batch_size * places * inputs * outputs) for name, places, inputs, outputs, products in layers]


def flops_table(batch_size):
    """The sum of step_flops, line by line."""
    layers = step_flops(batch_size)
    lines = ['  %-14s %-30s %9.4f GFLOP' % (name, terms, operations / 1e9) for name, terms, operations in layers]
    return '\n'.join(lines + ['  %-45s %9.4f GFLOP' % ('sum', sum(operations for _, _, operations in layers) / 1e9)])


def matrix_product_rate(device, size=4096, runs=8):
    """Floating-point operations a second of a float32 matrix product of size x size on a device: the median of some runs."""
    with tf.Graph().as_default(), tf.device(device):
        factors = [tf.get_variable(name, [size, size], initializer=tf.random_normal_initializer()) for name in 'ab']
        product = tf.matmul(*factors).op
        seconds = []
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(runs + 2):
                start = time.perf_counter()
                session.run(product)
                seconds.append(time.perf_counter() - start)
    return 2 * size ** 3 / statistics.median(seconds[2:])
