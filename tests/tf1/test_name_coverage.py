"""docs/name_coverage.py: what a program finds of names."""

import os
import subprocess
import sys

import pytest
import tensorflow

from tests.helpers.forks import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(tensorflow.__version__ < '2', reason='1.15 has all names'),
]
SCRIPT = os.path.join(ROOT, 'docs', 'name_coverage.py')


def test_the_table_and_the_missing_names(tmp_path):
    """A program that prints names stands for Python with TensorFlow 1.15."""
    python = tmp_path / 'python'
    names = 'Session nn.relu contrib.crf.nix contrib.learn.ModeKeys raw_ops.Nix raw_ops.Add'
    python.write_text(
        f'#!{sys.executable}\nimport json\nprint("noise")\nprint(json.dumps({names.split()}))\n'
    )
    python.chmod(0o755)
    table, missing = [
        subprocess.run(
            [sys.executable, SCRIPT, str(python), *options],
            stdout=subprocess.PIPE,
            check=True,
        )
        .stdout.decode()
        .splitlines()
        for options in ([], ['missing'])
    ]
    assert table[2:] == [
        '| `tf.contrib.crf` | 1 | | | 1 | |',
        '| `tf.raw_ops` | 2 | 1 | | | 1 |',
        '| 3 other modules | 3 | 3 | | | |',
        '| all | 6 | 4 | | 1 | 1 |',
    ]
    assert missing == ['raw_ops.Nix']
