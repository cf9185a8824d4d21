"""Tables of an evaluation as text, and predictions as CSV."""

import csv
import io

import numpy as np
import pytest

from cifar10.evaluation import Result
from cifar10.report import text_report
from cifar10.report.metrics import Mistake
from tests.helpers import scored

SCORES = scored.of_matrix([[8, 2, 0], [1, 3, 0], [5, 1, 0]])


def test_by_class():
    """11 of 20 are correct."""
    assert text_report.classification_report(SCORES, ['airplane', 'é', '猫']).splitlines() == [
        'class     precision  recall  count',
        'airplane      0.571   0.800     10',
        'é             0.500   0.750      4',
        '猫                 -   0.000      6',
        'all           0.550   0.550     20',
    ]


def test_long_names():
    """Names are shortened if they stay distinct."""
    lines = text_report.classification_report(SCORES, ['x' * 41, 'y' * 40, 'z']).splitlines()
    assert lines[1].startswith('x' * 37 + '...  ') and lines[2].startswith('y' * 40 + '  ')
    names = ['x' * 40 + '1', 'x' * 40 + '2', 'z']
    assert text_report.classification_report(SCORES, names).splitlines()[1].startswith(names[0])


def test_confusion():
    """Headings are numbers if a name is long or there are more than 10 classes."""
    assert text_report.confusion_matrix(SCORES, ['automobile', 'cat', 'dog']).splitlines() == [
        'Confusion matrix (rows: label; columns: predicted class):',
        '            automobile  cat  dog',
        'automobile           8    2    0',
        'cat                  1    3    0',
        'dog                  5    1    0',
    ]
    lines = text_report.confusion_matrix(SCORES, ['cat', 'hippopotami', 'dog']).splitlines()
    assert lines[1].split() == ['0', '1', '2'] and lines[3] == '1 hippopotami  1  3  0'
    lines = text_report.confusion_matrix(scored.of_matrix(np.eye(11, dtype=int)), ['cat'] * 11)
    assert lines.splitlines()[1].split() == [str(number) for number in range(11)]


def test_most_frequent_confusions():
    matrix = np.diag(np.full(21, 5))
    assert len(text_report.confusion_matrix(scored.of_matrix(matrix[:20, :20]), ['a'] * 20)) > 400
    assert text_report.confusion_matrix(scored.of_matrix(matrix), []) == 'No confusions'
    matrix[3, 5], matrix[20, 0], matrix[2, 1] = 4, 7, 4
    names = [f'class{i}' for i in range(21)]
    assert text_report.confusion_matrix(scored.of_matrix(matrix), names).splitlines() == [
        'The most frequent confusions:',
        '  class20 predicted as class0: 7 of 12',
        '  class2 predicted as class1: 4 of 9',
        '  class3 predicted as class5: 4 of 9',
    ]
    report_text = text_report.confusion_matrix(scored.of_matrix(np.ones([21, 21], int)), names)
    assert report_text.count('\n') == 20


def test_whole():
    """All probabilities are 0.9; 55 % are correct. The report has ten mistakes."""
    found = [Mistake(123, None, 1, 2, 0.981)] + 10 * [Mistake(7, None, 0, 1, 0.5)]
    names = ['bird', 'dog', 'cat']
    image_files = {7: 'bird/a b.jpg', 8: 'cat/c.jpg'}
    report = text_report.full_report(Result(1, SCORES, found, names, {}, image_files))
    assert report.splitlines()[-12:-8] == [
        'Calibration: expected error 0.350 (15 bins), mean confidence 0.900, accuracy 0.550',
        'The most confident mistakes:',
        '  example 123: predicted cat (0.98), label dog',
        '  example 7 (bird/a b.jpg): predicted dog (0.50), label bird',
    ]
    assert report.startswith(
        text_report.classification_report(SCORES, names) + '\nConfusion matrix'
    )
    assert text_report.mistakes([], names, {}) == 'No mistakes'


@pytest.mark.parametrize('image_files', [{}, {i: f'a,b/{i}\n.png' for i in range(50)}])
def test_predictions(image_files):
    """Names with separators of CSV; float32 to a relative error of 1e-6."""
    metrics, names = scored.metrics(50, 4), ['a,b', 'say "c"', '猫', 'd']
    metrics.log_probabilities[0, :2] = -80, -np.inf
    content = text_report.predictions_csv(Result(1, metrics, [], names, {}, image_files))
    assert '\r' not in content
    header, *rows = list(csv.reader(io.StringIO(content)))
    if image_files:
        assert [row.pop(1) for row in [header, *rows]] == ['file', *image_files.values()]
    assert header == ['index', 'label'] + names
    found = np.array(rows, np.float64)
    np.testing.assert_array_equal(found[:, :2].T, [np.arange(50), metrics.labels])
    expected = np.exp(metrics.log_probabilities.astype(np.float64))
    np.testing.assert_allclose(found[:, 2:], expected, rtol=1e-6, atol=0)
