"""The figures of the documentation show the committed measurements."""

import glob
import hashlib
import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.helpers import programs

FIGURES = os.path.join(programs.ROOT, 'docs', 'figures')
NAMES = (
    'data_flow data_flow_zh distributed_modes first_run graph_and_session network partition recipes step_timeline'
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
    assert len(paths) == 4
    for path in paths:
        with open(path, 'rb') as opened:
            content = opened.read()
        name = os.path.splitext(os.path.basename(path))[0]
        with open(os.path.join(FIGURES, name + '.svg')) as opened:
            assert hashlib.sha256(content).hexdigest() in opened.read(), 'run docs/figures/draw.py'
        header = [line for line in content.decode().splitlines() if line.startswith('#')]
        for key in ('command', 'hardware', 'versions', 'date'):
            assert any(line.startswith(f'# {key}: ') for line in header), (path, key)
