"""Flags of a cluster, and the resulting Cluster, Task and Strategy."""

import os
import re

from absl import flags

from cifar10.cli import training_flags
from cifar10.distributed.cluster import JOBS, MODES, Cluster, Strategy, Task, from_tf_config
from cifar10.errors import UserError

FLAGS = flags.FLAGS

_TASK_FLAGS = 'ps_hosts', 'worker_hosts', 'job_name', 'task_index'
_FRESH = re.compile('--?(no)?fresh(=.*)?')
_MODE = re.compile(r'(?:^|\s)--?mode[= ](\w+)(?!\S)')
_NUM_GPUS = re.compile(r'(?:^|\s)--?num_gpus[= ]([1-9]\d*)(?!\S)')


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
    flags.DEFINE_enum('job_name', None, JOBS, 'Job of this task: ps or worker. Default: TF_CONFIG.')
    flags.DEFINE_integer(
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
            'sync: average only the first N gradients of a step, one per worker; 0 means all workers.',
        ),
        ('fetch_steps', 1, 1, 'async: steps between two fetches of the weights.'),
        ('push_steps', 1, 1, 'async: steps between two pushes of the gradients.'),
        ('average_period', 10, 1, 'average: steps between two averages of the weights.'),
        (
            'stall_timeout_secs',
            120,
            1,
            'Limit of the time to each step after the first one, in seconds. After it, the task exits with status 75.',
        ),
    ]:
        flags.DEFINE_integer(name, default, description, lower_bound)


def check():
    """Raise UserError for contradictory flags."""
    training_flags.check()
    cluster, _ = cluster_from_flags()
    strategy_from_flags(cluster)


def cluster_from_flags():
    """Return the Cluster and the Task of this process.

    Flags override TF_CONFIG.

    Raises:
      UserError: the values are incomplete or malformed.
    """
    text = os.environ.get('TF_CONFIG')
    cluster, task = from_tf_config(text) if text else (Cluster((), ()), (None, None))
    given = {name: FLAGS[name].value for name in _TASK_FLAGS if FLAGS[name].value is not None}
    values = dict(zip(_TASK_FLAGS, (*cluster, *task)), **given)
    for name in ('job_name', 'task_index'):
        if values[name] is None:
            raise UserError(
                f'--{name} is missing: '
                'give --worker_hosts, --ps_hosts, --job_name and --task_index, or set TF_CONFIG'
            )
    cluster = Cluster(tuple(values['ps_hosts']), tuple(values['worker_hosts']))
    task = Task(values['job_name'], values['task_index'])
    cluster.check(task)
    return cluster, task


def strategy_from_flags(cluster):
    """Return the Strategy for a Cluster; raise UserError if flags contradict each other."""
    mode = FLAGS.mode or ('sync' if cluster.ps_hosts else 'allreduce')
    if mode == 'allreduce' and cluster.ps_hosts:
        raise UserError(
            '--mode=allreduce has no parameter servers: leave out --mode, or give an empty --ps_hosts='
        )
    if mode != 'allreduce' and not cluster.ps_hosts:
        raise UserError(f'--mode={mode} needs parameter servers: give --ps_hosts')
    strategy = Strategy(
        mode,
        len(cluster.worker_hosts),
        FLAGS.replicas_to_aggregate,
        FLAGS.fetch_steps,
        FLAGS.push_steps,
        FLAGS.average_period,
    )
    if strategy.num_aggregated > strategy.num_workers:
        raise UserError(
            f'--replicas_to_aggregate={strategy.replicas_to_aggregate} is more than the number of workers ({strategy.num_workers}): '
            'give at most this number'
        )
    if FLAGS.deterministic and mode != 'allreduce':
        raise UserError(
            f'--deterministic does not work with --mode={mode}: '
            'leave it out, or train without parameter servers'
        )
    return strategy


class TrainerCommand:
    """Command of each task that the launcher starts.

    Attributes:
      num_gpus: the number of GPUs of each worker.
      is_async: True for --mode=async.
    """

    def __init__(self, trainer, trainer_flags):
        """Make the commands from that of the trainer and its flags, lists of strings."""
        self._trainer, self._trainer_flags = trainer, trainer_flags
        # The last flag is valid. The trainer rejects malformed numbers.
        text = ' '.join(trainer_flags)
        numbers, modes = _NUM_GPUS.findall(text), _MODE.findall(text)
        self.num_gpus = int(numbers[-1]) if numbers else 1
        self.is_async = modes[-1:] == ['async']

    def __call__(self, cluster, task, has_begun):
        """Return the command of a Task; a run that has begun is resumed."""
        own = [f'--{job}_hosts={",".join(hosts)}' for job, hosts in cluster.spec.items()]
        own += [f'--job_name={task.job_name}', f'--task_index={task.index}']
        others = self._trainer_flags
        if has_begun:  # --fresh, possibly from a --flagfile, would move the run aside.
            others = [flag for flag in others if not _FRESH.fullmatch(flag)] + ['--nofresh']
        return self._trainer + others + own
