"""Flags of a cluster; the Cluster, Task, Strategy and Timeouts that they describe."""

import os

from absl import flags

from cifar10.cli import data_flags, training_flags
from cifar10.distributed.cluster import (
    EVALUATOR,
    JOBS,
    MODES,
    Cluster,
    Strategy,
    Task,
    Timeouts,
    from_tf_config,
)
from cifar10.errors import UserError

FLAGS = flags.FLAGS


def define():
    """Define the flags of the cluster."""
    flags.DEFINE_list(
        'ps_hosts',
        None,
        'Addresses host:port of the parameter servers, separated by commas; empty for allreduce. '
        'Default: TF_CONFIG.',
    )
    flags.DEFINE_list(
        'worker_hosts',
        None,
        'Addresses host:port of the workers, separated by commas; the first worker is the chief. '
        'Default: TF_CONFIG.',
    )
    flags.DEFINE_enum(
        'job_name',
        None,
        JOBS + (EVALUATOR,),
        'Job of this task: ps, worker, or evaluator (which needs no index). Default: TF_CONFIG.',
    )
    data_flags.define_integer(
        'task_index', None, 'Index of this task in its job, from 0. Default: TF_CONFIG.', 0
    )
    flags.DEFINE_enum(
        'mode',
        None,
        MODES,
        'Mode of training. Default: sync with parameter servers, allreduce without.',
    )
    for name, default, lower_bound, description in [
        (
            'replicas_to_aggregate',
            0,
            0,
            'sync: gradients per update, one per worker, the first to arrive; 0 means all workers.',
        ),
        ('fetch_steps', 1, 1, 'async: steps between two fetches of the weights.'),
        ('push_steps', 1, 1, 'async: steps between two pushes of the gradients.'),
        ('average_period', 10, 1, 'average: steps between two averages of the weights.'),
        (
            'connect_timeout_secs',
            300,
            1,
            'Seconds to wait for the first update; then exit status 75. If the chief has never answered: three times as '
            'long, then exit status 1.',
        ),
        (
            'stall_timeout_secs',
            120,
            1,
            'Seconds to wait for each further update; then exit status 75.',
        ),
    ]:
        data_flags.define_integer(name, default, description, lower_bound)


def check():
    """Raise UserError for contradictory flags; print those that override TF_CONFIG."""
    training_flags.check()
    cluster, task = cluster_from_flags()
    for name, value in _tf_config().items():
        flag = FLAGS[name].value
        if (
            flag is not None
            and value not in ((), None)
            and value != (tuple(flag) if isinstance(flag, list) else flag)
        ):
            shown = ','.join(value) if isinstance(value, tuple) else value
            print(f'--{name} overrides TF_CONFIG ({shown})')
    strategy_from_flags(cluster)


def cluster_from_flags():
    """Return the Cluster and the Task of this process.

    Flags override TF_CONFIG.

    Raises:
      UserError: the values are incomplete or malformed.
    """
    values = {
        name: value if FLAGS[name].value is None else FLAGS[name].value
        for name, value in _tf_config().items()
    }
    cluster = Cluster(tuple(values['ps_hosts']), tuple(values['worker_hosts']))
    for name in ('job_name', 'task_index'):
        if values[name] is None and values['job_name'] != EVALUATOR:
            raise UserError(
                f'--{name} is missing: give --worker_hosts, --ps_hosts, --job_name and --task_index, or set TF_CONFIG'
            )
    task = Task(values['job_name'], values['task_index'] or 0)
    cluster.check(task)
    return cluster, task


def _tf_config():
    """Return the values of TF_CONFIG by flag name; a missing value is empty or None."""
    text = os.environ.get('TF_CONFIG')
    cluster, task = from_tf_config(text) if text else (Cluster((), ()), (None, None))
    return dict(zip(('ps_hosts', 'worker_hosts', 'job_name', 'task_index'), cluster + tuple(task)))


def strategy_from_flags(cluster):
    """Return the Strategy for a Cluster.

    Raises:
      UserError: the mode does not work with these tasks, or a flag has no effect.
    """
    mode = FLAGS.mode or ('sync' if cluster.ps_hosts else 'allreduce')
    if (mode == 'allreduce') == bool(cluster.ps_hosts):
        raise UserError(
            f'--mode={mode} does not work with {len(cluster.ps_hosts)} parameter servers: --mode=allreduce has none, every '
            'other mode needs --ps_hosts'
        )
    strategy = Strategy(
        mode,
        len(cluster.worker_hosts),
        FLAGS.replicas_to_aggregate,
        FLAGS.fetch_steps,
        FLAGS.push_steps,
        FLAGS.average_period,
    )
    strategy.check()
    if FLAGS.deterministic and (mode == 'async' or strategy.num_aggregated < strategy.num_workers):
        raise UserError(
            '--deterministic does not work with --mode=async or --replicas_to_aggregate, because the order of the '
            'gradients is random: leave it out'
        )
    return strategy


def timeouts_from_flags():
    """Return the Timeouts."""
    return Timeouts(FLAGS.connect_timeout_secs, FLAGS.stall_timeout_secs)
