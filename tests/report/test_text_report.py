"""What is told as text."""

import numpy as np

from cifar10.report import text_report
from cifar10.report.mistakes import Mistake
from tests.helpers import scored

MATRIX = [[8, 2, 0], [1, 3, 0], [5, 1, 0]]
SCORES = scored.of_matrix(MATRIX)


def test_by_class():
    """11 of 20 are correct."""
    assert text_report.by_class(SCORES, ['airplane', 'cat', 'dog']).splitlines() == [
        'class     precision  recall  count',
        'airplane      0.571   0.800     10',
        'cat           0.500   0.750      4',
        'dog               -   0.000      6',
        'all           0.550   0.550     20',
    ]
    assert [line.split()[0] for line in text_report.by_class(SCORES, None).splitlines()] == [
        'class',
        '0',
        '1',
        '2',
        'all',
    ]


def test_odd_names():
    """Long names are shortened; wide characters take two columns, and an accent none."""
    lines = text_report.by_class(SCORES, ['x' * 60, '猫猫', 'e\u0301']).splitlines()
    assert lines[1].startswith('x' * 37 + '...  ') and lines[2].startswith(
        '猫猫' + 36 * ' ' + '      0.500'
    )
    assert (
        lines[3].startswith('e\u0301' + 39 * ' ' + '          -')
        and len({len(lines[i]) for i in (0, 1, 4)}) == 1
    )


def test_by_class_in_markdown():
    assert text_report.by_class_markdown(SCORES, ['a|b', '*c_d*', '<e>&[f]']).splitlines() == [
        '| class | precision | recall | count |',
        '| --- | --- | --- | --- |',
        r'| a\|b | 0.571 | 0.800 | 10 |',
        r'| \*c\_d\* | 0.500 | 0.750 | 4 |',
        r'| &lt;e&gt;&amp;\[f\] | - | 0.000 | 6 |',
        '| all | 0.550 | 0.550 | 20 |',
    ]


def test_confusion():
    assert text_report.confusion(SCORES, ['airplane', 'cat', 'hippopotamus']).splitlines() == [
        'Confusion matrix (rows: label; columns: predicted class):',
        '              airplane  cat  hippopo...',
        'airplane             8    2           0',
        'cat                  1    3           0',
        'hippopotamus         5    1           0',
    ]


def test_names_that_are_the_same_when_shortened():
    lines = text_report.confusion(SCORES, ['a long name 1', 'a long name 2', 'cat']).splitlines()
    assert lines[1].split() == ['0', '1', '2'] and lines[3] == '1 a long name 2  1  3  0'


def test_most_frequent_confusions():
    matrix = np.diag(np.full(21, 5))
    matrix[3, 5], matrix[20, 0], matrix[2, 1] = 4, 7, 4
    lines = text_report.confusion(
        scored.of_matrix(matrix), ['class%d' % i for i in range(21)]
    ).splitlines()
    assert lines == [
        'The most frequent confusions:',
        '  class20 taken for class0: 7 of 12',
        '  class2 taken for class1: 4 of 9',
        '  class3 taken for class5: 4 of 9',
    ]
    assert text_report.confusion(scored.of_matrix(np.diag(np.full(21, 5))), None) == 'No confusions'
    assert (
        len(text_report.confusion(scored.of_matrix(np.full([21, 21], 1)), None).splitlines())
        == 1 + 20
    )


def test_calibration():
    """Everything has the probability 0.9; 0.55 are correct."""
    assert text_report.calibration(SCORES.calibration()) == (
        'Calibration: expected error 0.350 (15 bins), mean confidence 0.900, precision 0.550'
    )


def test_mistakes():
    found = [Mistake(123, None, 1, 2, 0.981), Mistake(7, None, 0, 1, 0.5)]
    assert text_report.mistakes(found, ['bird', 'dog', 'cat']).splitlines() == [
        'The most confident mistakes:',
        '  example 123: cat, not dog 0.98',
        '  example 7: dog, not bird 0.50',
    ]
    assert text_report.mistakes(found[:1], None).endswith('example 123: 2, not 1 0.98')
    assert text_report.mistakes([], None) == 'No mistakes'
