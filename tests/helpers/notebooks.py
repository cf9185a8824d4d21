"""Execution of notebooks in kernels of their own."""

import os
import re
import sys

import pytest

from tests.helpers.forks import DEADLINE_SECS, ROOT

nbclient = pytest.importorskip('nbclient')
nbformat = pytest.importorskip('nbformat')


def execute(notebook, directory, **environment):
    """Run a notebook in a kernel; return the output of each code cell as text."""
    inherited = {
        name: value for name, value in os.environ.items() if name != 'TF_CPP_MIN_LOG_LEVEL'
    }
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ['PATH']])
    nbclient.NotebookClient(
        notebook,
        timeout=5 * DEADLINE_SECS,  # A cell of the tour trains for 500 steps.
        kernel_name='python3',
        allow_errors=True,
        resources={'metadata': {'path': str(directory)}},
    ).execute(env=dict(inherited, PYTHONPATH=ROOT, PATH=path, **environment))
    return [''.join(map(text, cell.outputs)) for cell in code_cells(notebook)]


def code_cells(notebook):
    """Return the code cells of a notebook."""
    return [cell for cell in notebook.cells if cell.cell_type == 'code']


def text(output):
    """Return an output as a reader sees it: text, a traceback, or [type of the data] data."""
    if output.output_type == 'stream':
        return output.text
    if output.output_type == 'error':
        return re.sub(r'\x1b\[[\d;]*m', '', '\n'.join(output.traceback))
    kind, data = sorted(output.data.items())[0]
    return f'[{kind}] {data}'
