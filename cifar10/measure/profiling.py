"""Where the time of a step goes: the operations of traced steps."""

import collections
import re

import tensorflow.compat.v1 as tf

from cifar10.measure import benchmark
from cifar10.report import tracing

SUM = 'sum of all operations'  # of their single times: in parallel they take less
_ROWS = 25


def trace(session, train_op, warmup_steps, steps):
    """Traces some steps.

    Args:
      session: a tf.Session.
      train_op: what to run.
      warmup_steps: steps to run before, without a trace.
      steps: steps to trace.

    Returns:
      A dict from each operation, as 'name (type)', to its milliseconds per step, and their SUM; and
      the last step as a Chrome trace in JSON.
    """
    for _ in range(warmup_steps):
        session.run(train_op)
    took = collections.Counter()
    for _ in range(steps):
        metadata = tf.RunMetadata()
        session.run(train_op, options=tracing.OPTIONS, run_metadata=metadata)
        for device in metadata.step_stats.dev_stats:
            for node in device.node_stats:
                match = re.search(r' = (\w+)\(', node.timeline_label)
                ms = (node.op_end_rel_micros - node.op_start_rel_micros) / 1e3
                took['%s (%s)' % (node.node_name, match.group(1) if match else '')] += ms / steps
                took[SUM] += ms / steps
    return dict(took), tracing.chrome_trace(metadata)


def most_expensive(measured):
    """The most expensive operations and their share of the sum, as a table in Markdown.

    Args:
      measured: dict from each operation to its milliseconds in each round, as `trace` names them.
    """
    medians = {
        name: benchmark.summarize(ms)['median'] for name, ms in measured.items() if name != SUM
    }
    names = sorted(medians, key=medians.get, reverse=True)[:_ROWS] + [SUM]
    shares = {
        name: [100 * ms / total for ms, total in zip(measured[name], measured[SUM])]
        for name in names
    }
    return benchmark.figures_table({'ms': measured, 'share in %': shares}, names)
