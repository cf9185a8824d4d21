"""Signals to a launcher in a process of its own, as under cli/program.py."""

import os
import signal
import subprocess
import sys
import threading

from tests.helpers import programs

_LAUNCHER = """
import signal, sys
from cifar10.system import startup
from cifar10.cli.cluster_flags import TrainerCommand
from cifar10.distributed import launcher
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in program.start
startup.protect_stdout()
launcher.CHIEF_GRACE_SECS, launcher.GRACE_SECS = map(float, sys.argv[1:3])
try:
    status = launcher.Launcher(TrainerCommand(sys.argv[3:], []), 1, 2, 3).run()
except KeyboardInterrupt as interrupt:
    status = 128 + interrupt.args[0]
sys.exit(status)
"""
# The chief prints 'ready' when every task handles signals. On SIGTERM a task writes its name to
# `order`.
_TASK = """
def end(number, frame):
    %s
    with open('order', 'a') as order: order.write(task + '\\n')
    os._exit(0 if task == 'worker 0' else 143)
signal.signal(signal.SIGTERM, end)
touch('takes signals, ' + task)
if task == 'worker 0':
    wait_for('takes signals, worker 1')
    wait_for('takes signals, ps 0')
    print('ready')
wait_for('closed')
print('nobody reads this')
wait_for()
"""


class _Launched:
    """A launcher whose tasks are ready."""

    def __init__(self, trainer, chief_secs=20, grace_secs=20):
        self._process = subprocess.Popen(
            [sys.executable, '-c', _LAUNCHER, str(chief_secs), str(grace_secs)] + trainer.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=programs.ROOT),
            universal_newlines=True,
            start_new_session=True,
        )
        self._timer = threading.Timer(programs.DEADLINE_SECS, self._process.kill)
        self._timer.start()
        self.stdout = self._process.stdout
        assert self.stdout.readline() == '[worker 0] ready\n'

    def send(self, number):
        """Send a signal to the process group, as a terminal does."""
        os.killpg(self._process.pid, number)

    def end(self):
        """Wait for the end; return the exit status, the rest of stdout, and stderr."""
        try:
            stdout = '' if self.stdout.closed else self.stdout.read()
            return self._process.wait(), stdout, self._process.stderr.read()
        finally:
            self._timer.cancel()
            self._process.kill()
            self._process.wait()
            self.stdout.close()
            self._process.stderr.close()


def test_the_chief_ends_first(trainer, tmp_path):
    """The chief takes longer than the grace period of the others."""
    launched = _Launched(trainer(_TASK % "if task == 'worker 0': time.sleep(0.2); print('Saved')"))
    launched.send(signal.SIGINT)
    assert launched.end() == (0, '[worker 0] Saved\n', '')
    order = (tmp_path / 'order').read_text().splitlines()
    assert order[0] == 'worker 0' and sorted(order) == ['ps 0', 'worker 0', 'worker 1']


def test_a_chief_that_takes_too_long(trainer, tmp_path):
    launched = _Launched(trainer(_TASK % "if task == 'worker 0': wait_for()"), chief_secs=0.2)
    launched.send(signal.SIGTERM)
    assert launched.end() == (128 + signal.SIGTERM, '', '')
    assert sorted((tmp_path / 'order').read_text().splitlines()) == ['ps 0', 'worker 1']


def test_a_second_signal_kills_all(trainer, tmp_path):
    one = trainer(_TASK % "print('saving'); wait_for()")
    launched = _Launched(one)
    launched.send(signal.SIGINT)
    assert launched.stdout.readline() == '[worker 0] saving\n'
    launched.send(signal.SIGTERM)
    assert launched.end() == (128 + signal.SIGTERM, '', '-c: interrupted (SIGTERM)\n')
    while one.running():  # Killed processes may need a moment to end.
        pass
    assert not (tmp_path / 'order').exists()


def test_nobody_reads(trainer, tmp_path):
    """As after `| head`."""
    launched = _Launched(trainer(_TASK % ''))
    launched.stdout.close()
    (tmp_path / 'closed').write_text('')
    assert launched.end() == (0, '', '')
    assert (tmp_path / 'order').read_text().startswith('worker 0\n')
