"""The flags of a cluster, and the cluster and the strategy that they describe."""

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
    """Define the flags of the cluster and of the mode of training."""
    flags.DEFINE_list(
        'ps_hosts', None, 'Addresses host:port of the parameter servers; none for all-reduce.'
    )
    flags.DEFINE_list(
        'worker_hosts', None, 'Addresses host:port of the workers; the first one is the chief.'
    )
    flags.DEFINE_enum(
        'job_name',
        None,
        JOBS + (EVALUATOR,),
        'Job of this process; an evaluator needs no index.',
    )
    data_flags.define_integer('task_index', None, 'Index of this process in its job, from 0.', 0)
    flags.DEFINE_enum(
        'mode',
        None,
        MODES,
        'How the workers come together; the default is sync with parameter servers, and allreduce '
        'without.',
    )
    for name, default, lower_bound, description in [
        (
            'replicas_to_aggregate',
            0,
            0,
            'With sync, the workers whose gradients make an update, the first ones; 0 means all.',
        ),
        ('fetch_steps', 1, 1, 'With async, the steps after which a worker fetches the weights.'),
        ('push_steps', 1, 1, 'With async, the steps after which a worker sends its gradients.'),
        ('average_period', 10, 1, 'With average, the steps after which the weights are averaged.'),
        (
            'connect_timeout_secs',
            300,
            1,
            'End with status 75 after these seconds without a first update; with status 1 after three times as many, if '
            'the chief has never answered.',
        ),
        (
            'stall_timeout_secs',
            120,
            1,
            'End with status 75 after these seconds without a further update.',
        ),
    ]:
        data_flags.define_integer(name, default, description, lower_bound)


def check():
    """Raise UserError if the flags of training or of the cluster contradict each other.

    Flags that override TF_CONFIG are printed.
    """
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
            print(f'TF_CONFIG gives another --{name} ({shown}): the flag wins')
    strategy_from_flags(cluster)


def cluster_from_flags():
    """Return the Cluster and the Task of this process, from the flags and TF_CONFIG. Flags win.

    Raises:
      UserError: they are incomplete or malformed.
    """
    values = {
        name: value if FLAGS[name].value is None else FLAGS[name].value
        for name, value in _tf_config().items()
    }
    cluster = Cluster(tuple(values['ps_hosts']), tuple(values['worker_hosts']))
    for name in ('job_name', 'task_index'):
        if values[name] is None and values['job_name'] != EVALUATOR:
            raise UserError(
                f'--{name} is missing: say with --worker_hosts, --ps_hosts, --job_name and --task_index which task of which '
                'cluster this is, or set TF_CONFIG'
            )
    task = Task(values['job_name'], values['task_index'] or 0)
    cluster.check(task)
    return cluster, task


def _tf_config():
    """Return the values of TF_CONFIG by the names of flags; a missing one is empty or None."""
    text = os.environ.get('TF_CONFIG')
    cluster, task = from_tf_config(text) if text else (Cluster((), ()), (None, None))
    return dict(zip(('ps_hosts', 'worker_hosts', 'job_name', 'task_index'), cluster + tuple(task)))


def strategy_from_flags(cluster):
    """Return the Strategy for a Cluster.

    Raises:
      UserError: it is impossible with these tasks, or a flag has no effect.
    """
    mode = FLAGS.mode or ('sync' if cluster.ps_hosts else 'allreduce')
    if (mode == 'allreduce') == bool(cluster.ps_hosts):
        raise UserError(
            f'--mode={mode} cannot be with {len(cluster.ps_hosts)} parameter servers: --mode=allreduce has none, every other '
            'mode needs --ps_hosts'
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
            '--deterministic cannot be with --mode=async or with --replicas_to_aggregate: which gradients come first is '
            'left to chance'
        )
    return strategy


def timeouts_from_flags():
    """Return the Timeouts."""
    return Timeouts(FLAGS.connect_timeout_secs, FLAGS.stall_timeout_secs)
