"""Fake trainers for launchers: tiny programs with a deadline."""

import json
import os
import signal
import sys

from cifar10.cli.cluster_flags import TrainerCommand
from cifar10.distributed import launcher

KILL = 'os.kill(os.getpid(), signal.SIGKILL)'  # in a source
DEADLINE_SECS = 60
_PRELUDE = """
import json, os, signal, sys, time
os.chdir(os.path.dirname(os.path.abspath(sys.argv[0])))
flags = dict(word[2:].split('=', 1) for word in sys.argv[1:] if '=' in word)
task = flags['job_name'] + ' ' + flags['task_index']

def touch(name):
    open(name, 'w').close()

def end_too_late(number, frame):
    touch('too late')
    os._exit(1)

signal.signal(signal.SIGALRM, end_too_late)
signal.alarm(%d)

def wait_for(name='nothing'):
    while not os.path.exists(name):
        time.sleep(0.01)

def wait_for_all():
    for job_name in ('ps', 'worker'):
        for index in range(flags.get(job_name + '_hosts', '').count(':')):
            wait_for('%%s %%d' %% (job_name, index))

with open('starts', 'a+') as lines:  # Tasks start at the same time: each appends its line.
    lines.seek(0)
    start = sum(json.loads(line)['task'] == task for line in lines)
    lines.write(json.dumps(dict(task=task, process=os.getpid(), words=sys.argv[1:])) + '\\n')
touch(task)
"""


class Trainer:
    """Program of the tasks, which records its starts.

    Its source can use `task` (such as 'worker 0'), `start` (the number of earlier starts),
    touch(name) and wait_for(name) of a file, wait_for() forever, and wait_for_all() for the start
    of all tasks. After DEADLINE_SECS it makes the file 'too late', and exits.

    Attributes:
      command: a list of words.
    """

    def __init__(self, directory, source):
        path, self._starts = directory / 'trainer.py', directory / 'starts'
        path.write_text(_PRELUDE % DEADLINE_SECS + source)
        self._starts.write_text('')
        self.command = [sys.executable, '-S', str(path)]

    def starts(self):
        """Return a dict for each start."""
        return [json.loads(line) for line in self._starts.read_text().splitlines()]

    def tasks(self):
        """Return the sorted names of the tasks, one for each start."""
        return sorted(start['task'] for start in self.starts())

    def words(self, task):
        """Return the flags of each start of a task, lists of strings."""
        return [start['words'] for start in self.starts() if start['task'] == task]

    def running(self):
        """Return the ids of the running processes."""
        return [start['process'] for start in self.starts() if _runs(start['process'])]

    def end_all(self):
        """Kill the running processes."""
        for number in self.running():
            os.kill(number, signal.SIGKILL)


def launch(trainer, num_ps, num_workers, max_restarts=3, flags=()):
    """Launch a Trainer from this process, and return the exit status."""
    command = TrainerCommand(trainer.command, list(flags))
    return launcher.Launcher(command, num_ps, num_workers, max_restarts).run()


def _runs(number):
    try:
        os.kill(number, 0)
        with open(f'/proc/{number}/stat') as stat:
            return stat.read().rpartition(')')[2].split()[0] != 'Z'  # a zombie has ended
    except (FileNotFoundError, ProcessLookupError):
        return False
