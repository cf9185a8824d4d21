"""Results and ends of measured processes, without TensorFlow."""

import datetime
import os
import signal
import sys

import pytest

from cifar10.benchmark import processes
from cifar10.cli import program
from cifar10.errors import UserError
from cifar10.system import startup


class _CannotBePickled(Exception):
    """As errors of TensorFlow, which hold an operation."""

    def __reduce__(self):
        raise TypeError


def _fail(how):
    raise UserError('no such file') if how == 'mistake' else _CannotBePickled('no memory')


@pytest.mark.parametrize(
    'how, line', [('mistake', 'no such file$'), ('error', 'The measurement failed: no memory$')]
)
def test_a_measurement_that_fails(how, line):
    with pytest.raises(UserError, match='^' + line):
        processes.call_in_new_process(_fail, how)


def _process_id_and_handler():
    startup.import_tensorflow = lambda: None
    program.start('__mp_main__', define_flags=None)
    return os.getpid(), signal.getsignal(signal.SIGINT)


def test_the_process_is_new_and_ignores_ctrl_c():
    """The benchmark reports it."""
    pid, handler = processes.call_in_new_process(_process_id_and_handler)
    assert pid != os.getpid() and handler == signal.SIG_IGN


LINE = '2026-01-01 00:00:0%d.500000: step %d, loss = 1.00 (1.0 examples/sec; 1.000 sec/batch)\n'


def _run(text, more=''):
    return processes.run_trainer([sys.executable, '-c', more + f'print({text!r})'])


def test_times_of_a_trainer():
    assert _run(LINE % (1, 10) + LINE % (3, 20) + 'End') == {
        10: datetime.datetime(2026, 1, 1, 0, 0, 1, 500000),
        20: datetime.datetime(2026, 1, 1, 0, 0, 3, 500000),
    }


def test_a_trainer_that_fails():
    with pytest.raises(UserError, match='^-c failed$'):
        _run(LINE % (1, 20), 'import atexit, os; atexit.register(os._exit, 1); ')
