"""Measuring: a process of its own for every figure, rounds in turn, medians, spreads and ratios, tables, JSON."""
import contextlib
import datetime
import json
import multiprocessing
import os
import platform
import re
import resource
import signal
import statistics
import subprocess
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.runs import machine as threads
from cifar10.errors import UserError

OURS, CLASSIC = 'ours', 'classic'
_STEP_LINE = re.compile(r'^(\S+ \S+): step (\d+), ')


def fresh_process(function, *args):
    """Returns function(*args), called in a new process, in which nothing is warm and whose memory is its own.

    Raises:
      UserError: `function` raised it, or the process died.
    """
    context = multiprocessing.get_context('spawn')
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, args), daemon=True)
    with contextlib.ExitStack() as end:  # whatever interrupts the benchmark ends the process too
        with _signals_wait():
            process.start()
            end.callback(process.join)
            end.callback(process.kill)
        sender.close()
        try:
            result = receiver.recv()
        except EOFError:
            raise UserError('The process that measures ended before its time: make sure that there is enough memory')
    if isinstance(result, UserError):
        raise result
    return result


@contextlib.contextmanager
def _signals_wait():
    """Puts off SIGINT and SIGTERM to the end of the block, so that no process is lost while it starts."""
    caught = []
    handlers = {number: signal.signal(number, lambda number, _: caught.append(number))
                for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in caught:
        signal.raise_signal(number)


def _send(sender, function, args):
    try:
        sender.send(function(*args))
    except UserError as error:
        sender.send(error)


def usage():
    """The CPU seconds that this process has taken, user and system, and its peak memory in MB."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, _peak_mb(used)


def run_trainer(command, first, last):
    """Runs a training script to its end.

    Args:
      command: list of strings.
      first, last: steps that have log lines.

    Returns:
      The seconds between those two lines, and the peak memory of the process in MB.

    Raises:
      UserError: it failed; why stands on stderr.
    """
    with contextlib.ExitStack() as end:
        with _signals_wait():  # the session of its own keeps Ctrl-C, which ends the benchmark and so the trainer, from it
            process = end.enter_context(subprocess.Popen(
                command, stdout=subprocess.PIPE, universal_newlines=True, start_new_session=True))
            end.callback(process.kill)
        times = {int(match.group(2)): datetime.datetime.fromisoformat(match.group(1))
                 for match in map(_STEP_LINE.match, process.stdout) if match}
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    if status:
        raise UserError('%s failed' % os.path.basename(command[1]))
    return (times[last] - times[first]).total_seconds(), _peak_mb(used)


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
    names = next(iter(results.values()))
    lines = [[''] + list(columns)] + [[name] + [cell(column[name]) if name in column else '' for column in columns.values()]
                                      for name in names]
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
    if os.path.isdir(path) or not os.path.basename(path) or not (os.path.isdir(directory) and os.access(directory, os.W_OK)):
        raise UserError('Cannot write %s: name a file in a directory that exists and can be written to' % path)


def report(subcommand, results, flag_values):
    """The figures of every round, their summaries, host, versions and flags, as JSON."""
    return json.dumps({
        'subcommand': subcommand, 'time': time.strftime('%Y-%m-%dT%H:%M:%S%z'), 'host': host(), 'flags': flag_values,
        'rounds': results,
        'summary': {formulation: {name: summarize(values) for name, values in figures.items()}
                    for formulation, figures in results.items()},
        'ratios': {name: summarize(values) for name, values in ratios(results).items()}}, indent=1)


def write(path, text):
    """Writes a file whole, or not at all.

    Raises:
      UserError: it cannot be written.
    """
    try:
        with open(path + '.new', 'w') as new:
            new.write(text)
        os.replace(path + '.new', path)
    except OSError as error:
        raise UserError('Cannot write %s (%s): name another file' % (path, error.strerror))
    finally:
        if os.path.exists(path + '.new'):
            os.remove(path + '.new')
