"""Transfers between devices, from TensorFlow's partition graphs of a session run."""

import collections

import numpy as np
import tensorflow.compat.v1 as tf


class PartitionGraphs(tf.train.SessionRunHook):
    """Hook that keeps the graph, and the GraphDefs of its partitions in each step."""

    def __init__(self):
        self.parts = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(None, options=tf.RunOptions(output_partition_graphs=True))

    def after_run(self, run_context, run_values):
        self.parts.append(run_values.run_metadata.partition_graphs)
        self.whole = run_context.session.graph

    def transfers(self, index=-1):
        """Return a dict from (sender, receiver), full device names, to [(number of elements,
        bytes)], for one of the steps."""
        sent = collections.defaultdict(list)
        nodes = {node.name: node for part in self.parts[index] for node in part.node}
        for node in [node for node in nodes.values() if node.op == '_Send']:
            arrow = tuple(node.attr[end].s.decode() for end in ('send_device', 'recv_device'))
            source, _, port = node.input[0].partition(':')
            if arrow[0] != arrow[1] and not _is_signal(nodes[source]):
                tensor = self.whole.get_tensor_by_name(f'{source}:{port or 0}')
                sent[arrow].append(
                    (tensor.shape.num_elements(), tensor.shape.num_elements() * tensor.dtype.size)
                )
        return sent


def _is_signal(node):
    """Return True for an empty constant, which only signals the end of an operation."""
    return node.op == 'Const' and not np.prod(
        [size.size for size in node.attr['value'].tensor.tensor_shape.dim] + [1]
    )
