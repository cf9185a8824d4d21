"""Where a step's time goes: the operations of traced steps."""
import collections
import re

import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

from cifar10.measure import benchmark

SUM = 'sum of all operations'  # of what they took one by one: side by side they take less
_ROWS = 25


def trace(session, train_op, warmup_steps, steps):
    """Traces some steps.

    Args:
      session: a tf.Session.
      train_op: what to run.
      warmup_steps: steps to run before, untraced.
      steps: steps to trace.

    Returns:
      A dict from operation, as 'name (type)', to its milliseconds a step, with their SUM, and the last step as a Chrome trace,
      JSON.
    """
    for _ in range(warmup_steps):
        session.run(train_op)
    took = collections.Counter()
    for _ in range(steps):
        metadata = tf.RunMetadata()
        session.run(train_op, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        for device in metadata.step_stats.dev_stats:
            for node in device.node_stats:
                match = re.search(r' = (\w+)\(', node.timeline_label)
                ms = (node.op_end_rel_micros - node.op_start_rel_micros) / 1e3
                took['%s (%s)' % (node.node_name, match.group(1) if match else '')] += ms / steps
                took[SUM] += ms / steps
    return dict(took), timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()


def table(figures):
    """The most expensive operations and their share of the sum, as a table in Markdown.

    Args:
      figures: dict from operation to its milliseconds in each round, as `trace` names them.
    """
    medians = {name: benchmark.summarize(values)['median'] for name, values in figures.items()}
    names = sorted(medians, key=medians.get, reverse=True)[:_ROWS + 1]
    shown = {name: figures[name] for name in names if name != SUM}
    shown[SUM] = figures[SUM]
    return benchmark.table({'ms': shown, 'share in %': {
        name: [100 * ms / total for ms, total in zip(values, figures[SUM])] for name, values in shown.items()}})
