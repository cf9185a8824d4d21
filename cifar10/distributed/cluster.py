"""Tasks and addresses of a cluster, and modes of distributed training."""

import collections
import json
import re
from typing import NamedTuple, Tuple

from cifar10.errors import UserError

JOBS = ('ps', 'worker')
_CHIEFS = ('chief', 'master')  # in TF_CONFIG
MODES = ('sync', 'allreduce', 'async', 'average')
# Exit status of a task that is to be started again (sysexits.h), also after 128 + a signal's number
EX_TEMPFAIL = 75
_ADDRESS = re.compile(
    r'([\w-]{1,63}(\.[\w-]{1,63})*\.?|\[[0-9A-F:.]+\]):(\d{1,5})', re.ASCII | re.IGNORECASE
)


class Task(NamedTuple):
    """A process of a cluster."""

    job_name: str  # one of JOBS
    index: int  # from 0 in its job

    def __str__(self):
        return f'{self.job_name} {self.index}'

    @property
    def device(self):
        """The device name of the task's CPU."""
        return f'/job:{self.job_name}/task:{self.index}/cpu:0'

    @property
    def is_chief(self):
        """True if the task initializes and saves the variables, and writes summaries."""
        return self == Task('worker', 0)


class Cluster(NamedTuple):
    """Addresses 'host:port' of all tasks, in the order of their indexes."""

    ps_hosts: Tuple[str, ...]
    worker_hosts: Tuple[str, ...]

    @property
    def ps_tasks(self):
        """The tasks of the parameter servers."""
        return [Task('ps', index) for index in range(len(self.ps_hosts))]

    @property
    def worker_tasks(self):
        """The tasks of the workers."""
        return [Task('worker', index) for index in range(len(self.worker_hosts))]

    @property
    def state_tasks(self):
        """The tasks that hold what the workers share: the servers, or the chief."""
        return self.ps_tasks or self.worker_tasks[:1]

    @property
    def spec(self):
        """The argument of tf.train.ClusterSpec, without empty jobs."""
        return {job: list(hosts) for job, hosts in zip(JOBS, self) if hosts}

    def address(self, task):
        """Return the 'host:port' of a Task."""
        return getattr(self, task.job_name + '_hosts')[task.index]

    def describe(self, task):
        """Return a string with a Task and its address."""
        return f'{task} ({self.address(task)})'

    def check(self, task=None):
        """Check the addresses and the Task.

        Raises:
          UserError: an address is missing, malformed or repeated, or the cluster lacks the Task.
        """
        if not self.worker_hosts:
            raise UserError(
                'No worker is given: give --worker_hosts=host:port,host:port, or set TF_CONFIG'
            )
        addresses = collections.Counter(self.ps_hosts + self.worker_hosts)
        for address, count in addresses.items():
            found = _ADDRESS.fullmatch(address)
            if not found or not 0 < int(found.group(3)) < 2**16:
                raise UserError(
                    f'{address!r} is not an address: write host:port, with a port from 1 to 65535'
                )
            if count > 1:
                raise UserError(
                    f'The address {address} is given {count} times: '
                    'each task needs a port of its own'
                )
        if task and task not in self.ps_tasks + self.worker_tasks:
            num_tasks = len(self.spec.get(task.job_name, ()))
            raise UserError(
                f'There is no {task}: '
                f'the number of {task.job_name} addresses is {num_tasks}, and indexes begin at 0'
            )


class Strategy(NamedTuple):
    """Mode of distributed training with its parameters."""

    mode: str  # one of MODES
    num_workers: int
    replicas_to_aggregate: int = 0  # sync: number of gradients per update; 0 means all workers
    fetch_steps: int = 1  # async: local steps between two fetches of the weights
    push_steps: int = 1  # async: local steps between two pushes of gradients
    average_period: int = 10  # average: local steps between two averagings

    @property
    def owns_variables(self):
        """True if each worker trains variables of its own."""
        return self.mode in ('allreduce', 'average')

    @property
    def needs_all_workers(self):
        """True if no step is possible without one of the workers."""
        return self.mode in ('allreduce', 'average') or (
            self.mode == 'sync' and self.num_aggregated == self.num_workers
        )

    @property
    def num_aggregated(self):
        """The number of workers per update in the mode sync."""
        return self.replicas_to_aggregate or self.num_workers

    @property
    def batches_per_tower(self):
        """The number of batches per step for each tower of a worker."""
        return {'sync': self.num_aggregated, 'async': self.push_steps}.get(
            self.mode, self.num_workers
        )


def from_tf_config(text):
    """Return the Cluster and the Task of a TF_CONFIG in the form of tf.estimator.

    {"cluster": {"ps": [...], "worker": [...]}, "task": {"type": "worker", "index": 0}}. A "chief",
    or a "master", its older name, becomes worker 0, before the tasks of "worker".

    Raises:
      UserError: the TF_CONFIG is malformed.
    """
    try:
        config = json.loads(text)
        job_name, index = config['task']['type'], int(config['task']['index'])
        hosts = {job: list(addresses) for job, addresses in config['cluster'].items()}
        if index < 0 or job_name in _CHIEFS and index:
            raise ValueError(f'there is no {job_name} {index}')
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            f'TF_CONFIG is malformed ({error!r}): write {{"cluster": {{"ps": ["host:port"], "worker": '
            '["host:port"]}, "task": {"type": "worker", "index": 0}}'
        )
    chief = hosts.get('chief', hosts.get('master', []))
    workers = chief + hosts.get('worker', [])
    if job_name in _CHIEFS:
        job_name = 'worker'
    elif job_name == 'worker':
        index += len(chief)
    return Cluster(tuple(hosts.get('ps', [])), tuple(workers)), Task(job_name, index)
