"""The figures of the documentation show the committed measurements."""

import collections
import glob
import hashlib
import os
import re
import statistics
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.helpers import pages, programs

FIGURES = os.path.join(programs.ROOT, 'docs', 'figures')
NAMES = 'data_flow distributed_modes first_run operations recipes step_timeline'.split()


def _texts(path):
    root = ElementTree.parse(path).getroot()
    return [''.join(e.itertext()).strip() for e in root.iter('{http://www.w3.org/2000/svg}text')]


def _committed(name):
    return _texts(os.path.join(FIGURES, name + '.svg'))


def _rows(name):
    with open(os.path.join(FIGURES, 'measurements', name + '.csv')) as opened:
        lines = [line.strip() for line in opened if not line.startswith('#')]
    return [line.split(',') for line in lines[1:]]


@pytest.fixture(scope='module')
def drawn(tmp_path_factory):
    """The directory with all figures, drawn again."""
    pytest.importorskip('matplotlib')
    directory = tmp_path_factory.mktemp('figures')
    script = os.path.join(FIGURES, 'draw.py')
    command = [sys.executable, '-B', script, str(directory)]
    subprocess.run(command, check=True, timeout=programs.DEADLINE_SECS)
    return directory


def test_all_figures_are_drawn(drawn):
    names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(FIGURES, '*.svg')))
    assert sorted(os.listdir(str(drawn))) == names == [name + '.svg' for name in NAMES]


@pytest.mark.parametrize('name', NAMES)
def test_texts(drawn, name):
    """Coordinates differ between versions of matplotlib."""
    texts = _texts(str(drawn / (name + '.svg')))
    assert sorted(texts) == sorted(_committed(name)) and len(texts) > 10


@pytest.mark.parametrize('name', NAMES)
def test_form(name):
    path = os.path.join(FIGURES, name + '.svg')
    with open(path) as opened:
        content = opened.read()
    assert os.path.getsize(path) < 60000 and '<dc:date>' not in content
    assert re.search(r'<svg [^>]*width="900" ', content)


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


def test_operations():
    medians = {name: statistics.median(map(float, ms)) for name, *ms in _rows('operations')}
    assert medians.pop('other') + medians.pop('other gradients') < 0.01 * sum(medians.values())
    texts = _committed('operations')
    labels = [re.findall(r'[\d.]+', text) for text in texts if text.endswith(' ms')]
    shown = [float(number) for label in labels for number in label]
    assert sorted(shown) == pytest.approx(sorted(medians.values()), rel=0.005, abs=0.005)
    layers = [name for name in medians if not name.endswith(' gradients')]
    assert [text for text in texts if text in medians] == sorted(
        layers, key=lambda name: -medians[name] - medians.get(name + ' gradients', 0)
    )


def test_recipes():
    ends = {(recipe, seed): values for recipe, seed, *values in _rows('recipes')}
    groups = collections.defaultdict(list)
    for (recipe, _), values in ends.items():
        groups[recipe].append([float(value) for value in values])
    assert {name: len(group) for name, group in groups.items()} == {
        'classic': 1,
        'fast': 3,
        'best': 1,
        'momentum': 1,
    }
    rows = re.findall(
        r'^\| `(\w+)`(, with (momentum))?.*? \| (\d+) \| ([\d.]+).*?\| ([\d.]+)',
        pages.read('results.md'),
        re.MULTILINE,
    )
    wanted = {  # The last row of a recipe is the longest run.
        momentum or recipe: (int(epochs), float(minutes), float(precision))
        for recipe, _, momentum, epochs, minutes, precision in rows
    }
    assert set(wanted) == set(groups)
    for recipe, epochs, precision in re.findall(
        r'^\| `(\w+)`.* \| (\d+) \| (0\.\d+) \|$', pages.read('README.md'), re.MULTILINE
    ):
        assert wanted[recipe][::2] == (int(epochs), float(precision))
    texts = _committed('recipes')
    for recipe, group in groups.items():
        epochs, minutes, precision = (statistics.mean(column) for column in zip(*group))
        assert (round(epochs), round(minutes, 1), round(precision, 3)) == wanted[recipe]
        assert any(t.endswith(f': {precision:.3f} after {minutes:.1f} minutes') for t in texts)


def test_step_timeline():
    starts, ends = {}, {}
    for _, operation, start, duration in _rows('step_timeline'):
        starts.setdefault(operation, int(start))
        ends[operation] = max(ends.get(operation, 0), int(start) + int(duration))
    shared = ('dequeue', 'average_gradients', 'update', 'moving averages')
    last = max(end for operation, end in ends.items() if operation not in shared)
    assert starts['moving averages'] >= ends['update'] > last < ends['average_gradients']
    layers = ('conv1', 'conv2', 'norm', 'pool', 'local3', 'local4', 'loss')
    assert set(ends) == {*shared, *layers, *(layer + ' gradients' for layer in layers)}
    texts = _committed('step_timeline')
    assert {*layers, *shared} < set(texts)
    assert texts.count('conv2') == 1 + 8  # the legend; forward and gradients of two sub-batches


def test_first_run():
    with open(os.path.join(FIGURES, 'measurements', 'first_run.txt')) as opened:
        lines = [line.strip() for line in opened if not line.startswith('# ')]
    shown = [text.replace('\u00a0', ' ').strip() for text in _committed('first_run')]
    assert shown == [line for line in lines if line]
    for command in [line for line in lines if line.startswith('$')]:
        assert os.path.exists(os.path.join(programs.ROOT, command.split()[2]))
    assert any(re.search(r': step \d+, loss = ', line) for line in shown)
    assert len([line for line in shown if ': precision @ 1 = ' in line]) == 2
