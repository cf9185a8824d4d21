"""The tour, docs/tour.ipynb: its committed outputs, and those of a new kernel."""

import os
import re

import pytest

from tests.helpers import notebooks
from tests.helpers.forks import ROOT

TOUR = os.path.join(ROOT, 'docs', 'tour.ipynb')


def test_tour_has_ten_steps_with_links_and_outputs():
    tour = notebooks.nbformat.read(TOUR, 4)
    text = '\n'.join(cell.source for cell in tour.cells if cell.cell_type == 'markdown')
    assert re.findall(r'^## (\d+)\.', text, re.MULTILINE) == [str(step) for step in range(1, 11)]
    for link in re.findall(r'\]\(([^)]+)\)', text):
        assert os.path.exists(os.path.join(os.path.dirname(TOUR), link.split('#')[0])), link
    cells = notebooks.code_cells(tour)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    _check_outputs([''.join(map(notebooks.text, cell.outputs)) for cell in cells])


def _check_outputs(outputs):
    """Check the outputs of the tour's steps against what the text says."""
    record, distortions, queue, untrained, update, towers, training, _, evaluated = outputs[2:]
    assert outputs[0] == '' and outputs[1].startswith('Writing the synthetic data set')
    for output in (record, distortions, queue, untrained, update, towers, training):
        assert output.count('[image/png]') == 1 and 'Traceback' not in output
    assert re.match(r'first bytes: \[ +4 ', record)
    assert re.match(r'standardized: mean -?0\.000, standard deviation 1\.000\n', distortions)
    assert re.match(r'cross entropy 2\.(2[89]|3[0-2])\d, -ln\(1/10\) = 2\.303\n', untrained)
    before, after = map(float, re.match(r'loss ([\d.]+) before, ([\d.]+) after', update).groups())
    assert after < before
    largest, difference = map(
        float, re.search(r'^largest gradient (\S+), .* (\S+)\n', towers, re.MULTILINE).groups()
    )
    assert difference < 1e-4 * largest
    losses = re.findall(r'step \d+, loss = ([\d.]+)\n', training)
    # The weight decay alone lowers the loss by about 0.7.
    assert len(losses) == 10 and float(losses[-1]) < float(losses[0]) - 0.4
    # With the small batches of the test, some runs have not learned to tell the classes apart yet.
    found = re.search(r'precision @ 1 = ([\d.]+) \((\d+) of 2000', evaluated)
    assert abs(float(found.group(1)) - int(found.group(2)) / 2000) < 0.00051
    assert evaluated.count('[image/png]') == 3


@pytest.mark.slow
def test_tour(tmp_path):
    tour = notebooks.nbformat.read(TOUR, 4)
    for cell in tour.cells:
        cell.source = cell.source.replace('/tmp/cifar10_tour', str(tmp_path)).replace(
            'data_dir = DATA_DIR', 'data_dir, cifar10.FLAGS.batch_size = DATA_DIR, 32'
        )
    outputs = notebooks.execute(tour, os.path.dirname(TOUR))
    _check_outputs(outputs)
    assert '<iframe id="tensorboard-frame' in outputs[9]
