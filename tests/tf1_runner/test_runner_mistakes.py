"""Mistakes in the command line of the runner and in programs."""

import os
import re

import pytest

from tests.helpers import programs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    'arguments, line',
    [
        (['nix.py'], 'Cannot read the program nix.py (No such file or directory): give the path'),
        (['book.py'], 'book.py is a damaged notebook: open it in Jupyter'),
        (['damaged.ipynb'], 'damaged.ipynb is a damaged notebook: '),
        (['r.ipynb'], 'r.ipynb is a notebook for R: give one for Python'),
    ],
)
def test_one_line(tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'book.py').write_text('\ufeff{"cells": [3], "nbformat": 4}', encoding='utf-8')
    (tmp_path / 'r.ipynb').write_text('{"cells": [], "metadata": {"language_info": {"name": "R"}}}')
    (tmp_path / 'damaged.ipynb').write_text('{"cells": [\n')
    found, stdout, _ = programs.call('cifar10_run', *arguments)
    assert stdout == '' and found.startswith('cifar10_run.py: error: ' + line)


def test_python_2(tmp_path):
    (tmp_path / 'two.py').write_text("print 'Python 2'\n")
    line, _, _ = programs.call('cifar10_run', str(tmp_path / 'two.py'))
    assert re.match('cifar10_run.py: error: /.*/two.py:1: .*; this is Python 2: convert', line)


def test_a_syntax_error_is_shown_as_python_shows_it(tmp_path):
    program = tmp_path / 'typed.py'
    program.write_text('x = 1\nprint(x)))\n')
    status, stdout, stderr = programs.call('cifar10_run', str(program))
    assert (status, stdout) == (1, '')
    place, line, caret, message = stderr.splitlines()
    assert place == f'  File "{program}", line 2' and line.strip() == 'print(x)))'
    assert caret.strip() == '^' and message.startswith('SyntaxError: ')


def test_the_traceback_of_an_operation_ends_with_its_cause(tmp_path):
    program = tmp_path / 'labels.py'
    program.write_text(
        'import tensorflow as tf\n'
        'loss = tf.nn.sparse_softmax_cross_entropy_with_logits(\n'
        '    labels=[3, 10], logits=tf.zeros([2, 10]))\n'
        'with tf.Session() as session:\n'
        '    session.run(loss)\n'
    )
    status, _, stderr = programs.run('cifar10_run', str(program))
    assert status == 1 and stderr.startswith('Traceback ')
    cause = rf'labels.py: {program}:[23]: InvalidArgumentError: Received a label value of 10 which '
    assert re.match(cause, stderr.splitlines()[-1])


def test_the_home_directory_after_an_equals_sign(tmp_path):
    program = tmp_path / 'prints.py'
    program.write_text('import sys\nprint(sys.argv[1:])\n')
    arguments = ['--a=~/x', '--b=~', '--c=a=~/x', '--d=\u2013', '~/e']
    status, stdout, stderr = programs.run('cifar10_run', str(program), *arguments)
    home = os.path.expanduser('~')
    expected = [f'--a={home}/x', f'--b={home}', *arguments[2:]]
    assert (status, stdout, stderr) == (0, f'{expected}\n', '')
