"""The file of the predictions, read back by the csv module."""

import csv

import numpy as np
import pytest

from cifar10.errors import UserError
from cifar10.report import predictions_file
from cifar10.report.scores import Scores
from tests.helpers import scored


def test_what_is_written_is_read(tmp_path):
    """Names with what divides fields and lines of CSV; float32 to 1e-6."""
    scores, names, path = (
        scored.scores(50, 4),
        ['a,b', 'say "c"', '猫', 'd'],
        tmp_path / 'predictions.csv',
    )
    predictions_file.write(str(path), scores, names)
    content = path.read_bytes()
    assert b'\r' not in content and content.count(b'\n') == 51
    header, *rows = list(csv.reader(content.decode().splitlines()))
    assert header == ['index', 'label'] + names
    assert [row[:2] for row in rows] == [
        [str(i), str(label)] for i, label in enumerate(scores.labels)
    ]
    probabilities = np.array([row[2:] for row in rows], np.float64)
    np.testing.assert_allclose(
        probabilities, np.exp(scores.log_probabilities.astype(np.float64)), rtol=1e-6, atol=0
    )


def test_small_probabilities_and_numbers_for_names(tmp_path):
    scores = Scores(np.array([1], np.int32), np.array([[-80, 0, -np.inf]], np.float32))
    predictions_file.write(str(tmp_path / 'p'), scores, None)
    assert (tmp_path / 'p').read_text() == 'index,label,0,1,2\n0,1,1.804851e-35,1,0\n'


def test_whole_or_not_at_all(tmp_path):
    with pytest.raises(UserError, match='name another file'):
        predictions_file.write(str(tmp_path / 'missing' / 'p'), scored.scores(2, 2), None)
    assert list(tmp_path.iterdir()) == []
