"""The TensorFlow server of a task, and the sessions with it."""

import tensorflow.compat.v1 as tf

from cifar10.distributed import peers
from cifar10.errors import UserError, reason


def start(cluster, task, config):
    """Starts the server of this process, of which there can be only one; returns its target.

    Args:
      cluster: a Cluster.
      task: the Task of this process.
      config: a tf.ConfigProto. What it says about threads and devices holds for all sessions; what
        theirs say does not.

    Raises:
      UserError: it cannot listen at its port.
    """
    complaint = (
        '%s cannot listen: %%s. End what listens there, or give the task another port'
        % cluster.named(task)
    )
    refusal = peers.refused_port(cluster.address(task))
    if refusal:
        raise UserError(complaint % refusal)
    combined = tf.ConfigProto()
    combined.CopyFrom(config)
    if not cluster.ps:
        combined.experimental.collective_group_leader = '/job:worker/replica:0/task:0'
    spec = {job: list(hosts) for job, hosts in cluster._asdict().items() if hosts}
    print(
        '%s listens on all network interfaces and does what anybody asks: let only the cluster reach its port'
        % cluster.named(task),
        flush=True,
    )
    try:
        return tf.train.Server(
            tf.train.ClusterSpec(spec), task.job, task.index, config=combined
        ).target
    except tf.errors.OpError as error:
        raise UserError(complaint % reason(error))


def session_config(tasks, config=None):
    """A tf.ConfigProto for sessions that deal with these Tasks alone; any other may be away."""
    combined = tf.ConfigProto()
    if config:
        combined.CopyFrom(config)
    combined.device_filters.extend('/job:%s/task:%d' % task for task in tasks)
    return combined
