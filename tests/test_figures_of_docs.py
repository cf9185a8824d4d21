"""The figures of the documentation show the committed measurements."""

import glob
import hashlib
import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.helpers import programs

FIGURES = os.path.join(programs.ROOT, 'docs', 'figures')
NAMES = (
    'data_flow distributed_modes first_run graph_and_session network operations partition recipes '
    'step_timeline'
).split()


def _texts(path):
    root = ElementTree.parse(path).getroot()
    return [''.join(e.itertext()).strip() for e in root.iter('{http://www.w3.org/2000/svg}text')]


def _committed(name):
    return _texts(os.path.join(FIGURES, name + '.svg'))


def test_the_committed_figures_are_drawn(tmp_path):
    """Coordinates differ between versions of matplotlib."""
    pytest.importorskip('matplotlib')
    command = [sys.executable, '-B', os.path.join(FIGURES, 'draw.py'), str(tmp_path)]
    subprocess.run(command, check=True, timeout=programs.DEADLINE_SECS)
    names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(FIGURES, '*.svg')))
    assert sorted(os.listdir(str(tmp_path))) == names == [name + '.svg' for name in NAMES]
    for name in NAMES:
        texts = _texts(str(tmp_path / (name + '.svg')))
        assert sorted(texts) == sorted(_committed(name)) and len(texts) > 10, name


def test_measurements():
    """Each has a header, and its figure has its checksum."""
    paths = glob.glob(os.path.join(FIGURES, 'measurements', '*'))
    assert len(paths) == 5
    for path in paths:
        with open(path, 'rb') as opened:
            content = opened.read()
        name = os.path.splitext(os.path.basename(path))[0]
        with open(os.path.join(FIGURES, name + '.svg')) as opened:
            assert hashlib.sha256(content).hexdigest() in opened.read(), 'run docs/figures/draw.py'
        header = [line for line in content.decode().splitlines() if line.startswith('#')]
        for key in ('command', 'hardware', 'versions', 'date'):
            assert any(line.startswith(f'# {key}: ') for line in header), (path, key)


def test_operations_of_a_trace(tmp_path):
    """The parts of a batch belong to their layer."""
    names = 'conv2/Conv2D', 'conv2/Conv2D/sub_batch_1', 'softmax_linear/MatMul'
    events = [
        {'ph': 'X', 'ts': 9, 'dur': dur, 'args': {'name': f'tower_0/{prefix}{name}'}}
        for prefix, dur in [('', 1000), ('gradients/tower_0/', 3000)]
        for name in names
    ]
    (tmp_path / 'trace.json').write_text(json.dumps({'traceEvents': events}))
    command = [sys.executable, '-B', os.path.join(FIGURES, 'chrome_trace.py'), 'operations']
    output = subprocess.check_output([*command, str(tmp_path / 'trace.json')], text=True)
    assert sorted(output.splitlines()) == [
        'conv2 gradients,6.00',
        'conv2,2.00',
        'loss gradients,3.00',
        'loss,1.00',
        'operation,ms_1',
    ]
