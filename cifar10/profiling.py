"""Where a step's time goes: the operations of a traced run."""
import collections
import re
from typing import List, NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

_ROWS = 25


class Operation(NamedTuple):
    """What an operation of the graph took."""
    name: str
    type: str
    ms: List[float]  # in each traced step


def operations(session, train_op, warmup_steps, steps, trace_path):
    """Traces some steps, and writes the last one as a Chrome trace.

    Args:
      session: a tf.Session.
      train_op: what to run.
      warmup_steps: steps to run before, untraced.
      steps: steps to trace.
      trace_path: file of the trace, JSON.

    Returns:
      A list of Operation, the most expensive first.
    """
    for _ in range(warmup_steps):
        session.run(train_op)
    took = collections.defaultdict(lambda: [0.0] * steps)
    for step in range(steps):
        metadata = tf.RunMetadata()
        session.run(train_op, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        for device in metadata.step_stats.dev_stats:
            for node in device.node_stats:
                match = re.search(r' = (\w+)\(', node.timeline_label)
                took[node.node_name, match.group(1) if match else ''][step] += (node.op_end_rel_micros - node.op_start_rel_micros) / 1e3
    with open(trace_path, 'w') as trace:
        trace.write(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
    return sorted((Operation(name, kind, ms) for (name, kind), ms in took.items()), key=lambda operation: -sum(operation.ms))


def table(operations_):
    """The most expensive operations and their share of the sum, as a table in Markdown."""
    def mean(values):
        return sum(values) / len(values)
    total = sum(mean(operation.ms) for operation in operations_)
    lines = ['| ms | share | type | operation |', '| --- | --- | --- | --- |']
    lines += ['| %.3f | %.1f%% | %s | %s |' % (mean(operation.ms), 100 * mean(operation.ms) / total, operation.type, operation.name)
              for operation in operations_[:_ROWS]]
    rest = total - sum(mean(operation.ms) for operation in operations_[:_ROWS])
    lines += ['| %.3f | %.1f%% | | %d others |' % (rest, 100 * rest / total, max(0, len(operations_) - _ROWS)),
              '| %.3f | | | sum over all threads |' % total]
    return '\n'.join(lines)
