"""What an evaluation tells, as text."""

import math
import re
import unicodedata

import numpy as np

from cifar10.report import captions, markdown

_MATRIX_CLASSES = 20  # with more, the confusion matrix does not fit a terminal
_CONFUSIONS = 20  # listed instead, at most
_MISTAKES = 10  # listed, at most
_NAME = 40  # characters of a name, at most


def whole(result):
    """All that follows, of an evaluation.Result."""
    scores, class_names = result.scores, result.class_names
    return '\n'.join(
        [
            by_class(scores, class_names),
            confusion(scores, class_names),
            calibration(scores.calibration()),
            mistakes(result.mistakes[:_MISTAKES], class_names),
        ]
    )


def by_class(scores, class_names):
    """Precision, recall and number of examples of each class, and of all.

    Args:
      scores: a Scores.
      class_names: in label order, or None.
    """
    return _aligned(['class', 'precision', 'recall', 'count'], _by_class_rows(scores, class_names))


def by_class_markdown(scores, class_names):
    """The same for the Text tab of TensorBoard."""
    rows = [[_escaped(name)] + numbers for name, *numbers in _by_class_rows(scores, class_names)]
    return markdown.table(['class', 'precision', 'recall', 'count'], rows)


def _by_class_rows(scores, class_names):
    """Rows of strings. Each example is taken for one class: for all of them together, precision and
    recall are the same."""
    names = _told(captions.names(class_names, scores.num_classes))
    rows = list(zip(names, *scores.by_class())) + [
        ('all', scores.precision, scores.precision, scores.num_examples)
    ]
    return [
        [name, _share(precision), _share(recall), str(count)]
        for name, precision, recall, count in rows
    ]


def _told(names):
    """The names, shortened unless some of them would be the same."""
    shortened = [captions.shortened(name, _NAME) for name in names]
    return shortened if len(set(shortened)) == len(set(names)) else names


def _share(value):
    return '-' if math.isnan(value) else '%.3f' % value


def _escaped(name):
    """A name whose characters mean nothing in Markdown; markdown.table escapes what divides
    cells."""
    name = re.sub(r'([\\`*_\[\]])', r'\\\1', name)
    return name.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')


def confusion(scores, class_names):
    """The confusion matrix; with more than 20 classes, the most frequent confusions.

    Args:
      scores: a Scores.
      class_names: in label order, or None.
    """
    if scores.num_classes > _MATRIX_CLASSES:
        return _frequent_confusions(scores, class_names)
    names = [
        captions.shortened(name, _NAME) for name in captions.names(class_names, scores.num_classes)
    ]
    length = 10 if scores.num_classes <= 10 else 6
    headings = [captions.shortened(name, length) for name in names]
    if len(set(headings)) < len(headings):  # shortened names that are the same
        headings = [str(number) for number in range(scores.num_classes)]
        names = ['%s %s' % pair for pair in zip(headings, names)]
    rows = [[name] + [str(count) for count in row] for name, row in zip(names, scores.confusion())]
    return 'Confusion matrix (rows: label; columns: predicted class):\n' + _aligned(
        [''] + headings, rows
    )


def _frequent_confusions(scores, class_names):
    # of the matrix, which may be too large to make
    cells = scores.labels.astype(np.int64) * scores.num_classes + scores.classes
    found, counts = np.unique(cells[~scores.is_correct], return_counts=True)
    totals = np.bincount(scores.labels, minlength=scores.num_classes)
    lines = ['The most frequent confusions:'] if len(found) else ['No confusions']
    for place in np.argsort(-counts, kind='stable')[:_CONFUSIONS]:
        label, predicted = divmod(int(found[place]), scores.num_classes)
        lines.append(
            '  %s taken for %s: %d of %d'
            % (
                captions.name(class_names, label),
                captions.name(class_names, predicted),
                counts[place],
                totals[label],
            )
        )
    return '\n'.join(lines)


def calibration(bins):
    """A line that tells how far confidence and precision are apart in a reliability.Bins."""
    return 'Calibration: expected error %.3f (%d bins), mean confidence %.3f, precision %.3f' % (
        bins.expected_error,
        len(bins.counts),
        bins.mean_confidence,
        bins.precision,
    )


def mistakes(found, class_names):
    """A line for each Mistake in a list: the predicted class, then the right one, then the
    probability of the predicted one."""
    lines = ['The most confident mistakes:'] if found else ['No mistakes']
    for mistake in found:
        told = captions.mistake(
            captions.name(class_names, mistake.predicted),
            captions.name(class_names, mistake.label),
            mistake.probability,
        )
        lines.append('  example %d: %s' % (mistake.index, ' '.join(told)))
    return '\n'.join(lines)


def _aligned(header, rows):
    """Columns of text, the first one to the left and the others to the right, two spaces between
    them."""
    rows = [header] + rows
    widths = [max(map(_width, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        spaces = [' ' * (width - _width(cell)) for width, cell in zip(widths, row)]
        lines.append(
            '  '.join(
                [row[0] + spaces[0]] + [space + cell for space, cell in zip(spaces[1:], row[1:])]
            )
        )
    return '\n'.join(lines)


def _width(text):
    """Columns of a terminal: none for an accent on the character before, two for a wide
    character."""
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in 'FW'
        else 1
        for character in text
    )
