"""Notebooks under the runner, without a kernel."""

import json
import re

import pytest

from tests.helpers import programs

pytestmark = pytest.mark.slow


def _write_notebook(path, *cells):
    code = [{'cell_type': 'code', 'source': cell.splitlines(True)} for cell in cells]
    text = {'cell_type': 'markdown', 'source': 'print(1)'}
    path.write_text(json.dumps({'cells': [text] + code, 'nbformat': 4}))
    return str(path)


def test_notebook(tmp_path):
    """Magics and shell commands are skipped; cells after tf.app.run are executed."""
    path = _write_notebook(
        tmp_path / 'book.ipynb',
        '%load_ext tf1_runner\n%matplotlib inline\nimport tensorflow as tf\n',
        '%%bash\nls',
        '%%time\nif True:\n    !pip install \\\n        nothing\n    files = !ls\n%time steps = 4\nsteps',
        'text = """\n%not_a_magic\n!nor a command"""\ntf.Session?\nprint(text)',
        'FLAGS = tf.app.flags.FLAGS\n'
        'for default in (1, 2):\n'
        "    tf.app.flags.DEFINE_integer('max_steps', default, '')\n"
        'def main(_):\n'
        '    print(FLAGS.max_steps, __file__)\n'
        'tf.app.run()\n',
        '%%capture out\n%time x = 3 + \\\n    4\ndisplay(x)',
        '  files.all = !ls\n  print("end")\n  8;',
    )
    status, stdout, stderr = programs.run('cifar10_run', path, '--max_steps=5')
    assert status == 0 and stdout == f'4\n\n%not_a_magic\n!nor a command\n5 {path}\n7\nend\n'
    assert stderr.splitlines() == [
        'cifar10_run.py: book.ipynb, cell ' + skipped
        for skipped in (
            '1, line 1: skips %load_ext tf1_runner',
            '1, line 2: skips %matplotlib inline',
            '2: skips the cell %%bash',
            '3, line 1: skips %%time',
            '3, line 3: skips !pip install \\',
            '3, line 5: skips files = !ls',
            '4, line 4: skips tf.Session?',
            '6, line 1: skips %%capture out',
            '7, line 1: skips files.all = !ls',
        )
    ]


def test_errors_of_a_notebook(tmp_path):
    """Syntax errors come before the first cell runs."""
    path = _write_notebook(tmp_path / 'two.ipynb', 'print(1)', 'x = 1\nprint "two"')
    status, stdout, stderr = programs.run('cifar10_run', path)
    assert (status, stdout) == (1, '')
    assert re.match(rf'cifar10_run.py: error: {path}, cell 2:2: .*; this is Python 2: ', stderr)
    path = _write_notebook(tmp_path / 'fails.ipynb', '1', '\n1 / 0')
    status, stdout, stderr = programs.run('cifar10_run', path)
    assert (status, stdout) == (1, '1\n')
    place = f'  File "{path}, cell 2", line 2, in <module>\n    1 / 0\n'
    assert stderr.startswith('Traceback (most recent call last):\n' + place)
    path = _write_notebook(
        tmp_path / 'exits.ipynb', 'import sys, tensorflow as tf\ntf.app.run(lambda _: sys.exit(3))'
    )
    assert programs.run('cifar10_run', path) == (3, '', '')
    (tmp_path / 'old.ipynb').write_text(
        json.dumps({'worksheets': [{'cells': [{'cell_type': 'code', 'input': ['print(', '3)']}]}]})
    )
    assert programs.run('cifar10_run', str(tmp_path / 'old.ipynb')) == (0, '3\n', '')
