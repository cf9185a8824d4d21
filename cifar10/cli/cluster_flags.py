"""The flags of a cluster, and the cluster and the strategy that they describe."""
import os

from absl import flags

from cifar10.distributed import cluster
from cifar10.distributed.cluster import Cluster, Task, Timeouts
from cifar10.distributed.strategy import MODES, Strategy
from cifar10.errors import UserError

FLAGS = flags.FLAGS

_MAX = 2 ** 31 - 1


def define():
    """Defines the flags that say who trains together, and how."""
    flags.DEFINE_list('ps_hosts', None, 'Addresses host:port of the parameter servers; none for all-reduce.')
    flags.DEFINE_list('worker_hosts', None, 'Addresses host:port of the workers; the first one is the chief.')
    flags.DEFINE_enum('job_name', None, cluster.JOBS, 'What this process is.')
    flags.DEFINE_integer('task_index', None, 'Which of them it is, from 0.', lower_bound=0, upper_bound=_MAX)
    flags.DEFINE_enum('mode', None, MODES, 'How the workers come together; the default is sync with parameter servers, and allreduce '
                      'without.')
    strategy = Strategy._field_defaults
    for name, lowest, description in [
            ('replicas_to_aggregate', 0, 'With sync, the workers whose gradients make an update, the first ones; 0 means all.'),
            ('fetch_steps', 1, 'With async, the steps after which a worker fetches the weights.'),
            ('push_steps', 1, 'With async, the steps after which a worker sends its gradients.'),
            ('average_period', 1, 'With average, the steps after which the weights are averaged.')]:
        flags.DEFINE_integer(name, strategy[name], description, lower_bound=lowest, upper_bound=_MAX)
    for name, description in [('connect', 'there is no first update, because other tasks are not there'),
                              ('stall', 'there is no further update')]:
        flags.DEFINE_integer(
            name + '_timeout_secs', Timeouts._field_defaults[name],
            'Seconds after which the process ends with status 75 if %s.' % description, lower_bound=1, upper_bound=_MAX)


def given_cluster():
    """The Cluster and the Task of this process, from the flags and TF_CONFIG; flags win, and a line tells where they disagree.

    Raises:
      UserError: they are incomplete or malformed.
    """
    known, task = cluster.from_tf_config(os.environ['TF_CONFIG']) if os.environ.get('TF_CONFIG') else (Cluster((), ()), None)
    in_environment = dict(ps_hosts=known.ps, worker_hosts=known.worker, job_name=task and task.job, task_index=task and task.index)
    values = {name: _chosen(name, value) for name, value in in_environment.items()}
    combined = Cluster(tuple(values['ps_hosts']), tuple(values['worker_hosts']))
    for name in ('job_name', 'task_index'):
        if values[name] is None:
            raise UserError('--%s is missing: say with --worker_hosts, --ps_hosts, --job_name and --task_index which task of which '
                            'cluster this is, or set TF_CONFIG' % name)
    task = Task(values['job_name'], values['task_index'])
    combined.check(task)
    return combined, task


def _chosen(name, in_environment):
    """The value of a flag, or that of TF_CONFIG if the flag is not given."""
    value = FLAGS[name].value
    if value is None:
        return in_environment
    value = tuple(value) if isinstance(value, list) else value
    if in_environment not in ((), None) and value != in_environment:
        print('TF_CONFIG gives another --%s (%s): the flag wins' % (name, _text(in_environment)), flush=True)
    return value


def _text(value):
    return ','.join(value) if isinstance(value, tuple) else value


def given_strategy(combined):
    """The Strategy for a Cluster.

    Raises:
      UserError: it cannot be with these tasks, or a flag has no effect.
    """
    mode = FLAGS.mode or ('sync' if combined.ps else 'allreduce')
    if mode == 'allreduce' and combined.ps:
        raise UserError('--mode=allreduce has no parameter servers: leave out --ps_hosts, or give another --mode')
    if mode != 'allreduce' and not combined.ps:
        raise UserError('--mode=%s needs a parameter server: give --ps_hosts=host:port, or --mode=allreduce' % mode)
    strategy = Strategy(mode, len(combined.worker), FLAGS.replicas_to_aggregate, FLAGS.fetch_steps, FLAGS.push_steps,
                        FLAGS.average_period)
    strategy.check()
    if FLAGS.deterministic and (mode == 'async' or strategy.num_aggregated < strategy.num_workers):
        raise UserError('--deterministic cannot be with --mode=async or with --replicas_to_aggregate: which gradients come first is '
                        'left to chance')
    return strategy


def given_timeouts():
    """The Timeouts."""
    return Timeouts(FLAGS.connect_timeout_secs, FLAGS.stall_timeout_secs)
