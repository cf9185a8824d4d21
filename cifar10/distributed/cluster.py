"""The tasks of a cluster and their addresses, from lists of hosts or from TF_CONFIG."""

import collections
import json
import re
from typing import NamedTuple, Tuple

from cifar10.errors import UserError

# parameter servers, which hold the variables, and workers, which compute gradients
JOBS = ('ps', 'worker')
# This job evaluates checkpoints. It has no address: no other task connects to it.
EVALUATOR = 'evaluator'
# The phases of a task. In the last one it makes updates, or serves those who do.
CONNECTING, JOINING, FILLING, TRAINING = 'connecting', 'joining', 'filling the queue', 'training'
_CHIEF = 'chief'  # of TF_CONFIG
_LABEL = '[A-Za-z0-9_-]{1,63}'  # of a host name
_ADDRESS = re.compile(r'(%s(\.%s)*\.?|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}' % (_LABEL, _LABEL))


class Task(NamedTuple):
    """One process of a cluster."""

    job: str  # one of JOBS, or EVALUATOR
    index: int  # from 0 in its job

    def __str__(self):
        return '%s %d' % self

    @property
    def device(self):
        """The device name of the task's CPU."""
        return '/job:%s/task:%d/cpu:0' % self

    @property
    def is_chief(self):
        """Whether it gives the variables their first values, saves them and writes summaries."""
        return self == Task('worker', 0)


class Timeouts(NamedTuple):
    """Seconds after which a task gives up."""

    connect: float = 300  # before the first update
    stall: float = 120  # without another update


class Cluster(NamedTuple):
    """The addresses, 'host:port', of all tasks; the index of a task is its place in the list of its
    job."""

    ps: Tuple[str, ...]
    worker: Tuple[str, ...]

    @property
    def servers(self):
        """The tasks of the parameter servers."""
        return [Task('ps', index) for index in range(len(self.ps))]

    @property
    def workers(self):
        """The tasks of the workers."""
        return [Task('worker', index) for index in range(len(self.worker))]

    @property
    def text(self):
        """The flags that describe the cluster."""
        return ' '.join(
            '--%s_hosts=%s' % (job, ','.join(hosts))
            for job, hosts in self._asdict().items()
            if hosts
        )

    def address(self, task):
        """The 'host:port' of a Task."""
        return getattr(self, task.job)[task.index]

    def named(self, task):
        """A Task and its address, for messages."""
        return '%s (%s)' % (task, self.address(task))

    def check(self, task=None):
        """Checks the addresses, and that the Task is in the cluster.

        Raises:
          UserError: names what is missing, malformed or doubled.
        """
        if not self.worker:
            raise UserError(
                'No worker is given: name the workers with --worker_hosts=host:port,host:port or in TF_CONFIG'
            )
        addresses = self.ps + self.worker
        for address in addresses:
            if not _ADDRESS.fullmatch(address) or not 0 < int(address.rsplit(':', 1)[1]) < 2**16:
                raise UserError(
                    '%r is not an address: write host:port, with a port from 1 to 65535' % address
                )
        address, count = collections.Counter(addresses).most_common(1)[0]
        if count > 1:
            raise UserError(
                'The address %s is given %d times: each task needs a port of its own'
                % (address, count)
            )
        if task and task.job != EVALUATOR and not 0 <= task.index < len(getattr(self, task.job)):
            count = len(getattr(self, task.job))
            raise UserError(
                'There is no %s: %s'
                % (
                    task,
                    (
                        'the last index in --%s_hosts is %d' % (task.job, count - 1)
                        if count
                        else '--%s_hosts is empty' % task.job
                    ),
                )
            )


def from_tf_config(text):
    """Returns the Cluster and the Task that the environment variable TF_CONFIG describes, in the
    form of tf.estimator.

    {"cluster": {"ps": [...], "worker": [...]}, "task": {"type": "worker", "index": 0}}. If there is
    a job "chief", its task becomes worker 0, and the tasks of "worker" follow. The addresses of
    "evaluator" are ignored.

    Raises:
      UserError: it has another form.
    """
    complaint = (
        'TF_CONFIG is malformed (%s): write {"cluster": {"ps": ["host:port"], "worker": ["host:port"]}, "task": '
        '{"type": "worker", "index": 0}}'
    )
    try:
        config = json.loads(text)
        hosts, task = config['cluster'], config['task']
        known = (_CHIEF,) + JOBS + (EVALUATOR,)
        unknown = sorted(set(hosts) - set(known)) or [
            job for job in [task['type']] if job not in known
        ]
        if unknown:
            raise UserError(
                'TF_CONFIG has a job %r: only %s and %s are known'
                % (unknown[0], ', '.join(known[:-1]), known[-1])
            )
        if not all(
            isinstance(address, str)
            for addresses in hosts.values()
            for address in _listed(addresses)
        ):
            raise ValueError('an address is not a string')
        chief, ps, worker = [tuple(hosts.get(job, [])) for job in (_CHIEF,) + JOBS]
        if len(chief) > 1:
            raise ValueError('%d chiefs; there can be one' % len(chief))
        job, index = task['type'], int(str(task['index']))
        if job == _CHIEF and index not in range(len(chief)):
            raise ValueError('there is no chief %d' % index)
        if job == 'worker' and index >= 0:
            index += len(chief)
        return Cluster(ps, chief + worker), Task('worker' if job == _CHIEF else job, index)
    except (json.JSONDecodeError, RecursionError):
        raise UserError(complaint % 'not valid JSON')
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(
            complaint % ('%s is missing' % error if isinstance(error, KeyError) else error)
        )


def _listed(hosts):
    if not isinstance(hosts, list):
        raise ValueError('the addresses of a job are not a list')
    return hosts
