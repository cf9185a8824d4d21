"""Evaluation as text: tables, and the predictions as CSV."""

import collections
import csv
import io
import math

import numpy as np


def full_report(result):
    """Return all tables of an evaluation.Result."""
    metrics, class_names = result.metrics, result.class_names
    calibration = metrics.calibration()
    return '\n'.join(
        [
            classification_report(metrics, class_names),
            confusion_matrix(metrics, class_names),
            f'Calibration: expected error {calibration.expected_calibration_error:.3f} ({len(calibration.counts)} bins), '
            f'mean confidence {metrics.confidences.mean():.3f}, precision {metrics.precision:.3f}',
            mistakes(result.mistakes[:10], class_names),
        ]
    )


def classification_report(metrics, class_names):
    """Return a table of precision, recall and number of examples of each class, and of all.

    Args:
      metrics: a Metrics.
      class_names: in label order.
    """
    by_class = metrics.per_class_metrics()
    columns = _shorten_names(class_names), by_class.precision, by_class.recall, by_class.count
    # Each example is predicted once: over all classes, precision and recall are the same.
    total = 'all', metrics.precision, metrics.precision, metrics.num_examples
    rows = [
        [name, _format_fraction(precision), _format_fraction(recall), str(count)]
        for name, precision, recall, count in [*zip(*columns), total]
    ]
    return _align_columns([['class', 'precision', 'recall', 'count'], *rows])


def shorten(text, length):
    """Return the text, or its beginning and '...' if it is longer than `length` characters."""
    return text if len(text) <= length else text[: length - 3].rstrip() + '...'


def _shorten_names(names):
    """Return the names, shortened unless some of them would be the same."""
    short = [shorten(name, 40) for name in names]
    return short if len(set(short)) == len(names) else names


def _format_fraction(value):
    return '-' if math.isnan(value) else f'{value:.3f}'


def confusion_matrix(metrics, class_names):
    """Return the confusion matrix; with more than 20 classes, the most frequent confusions.

    Args:
      metrics: a Metrics.
      class_names: in label order.
    """
    if metrics.num_classes > 20:  # the matrix would not fit a terminal
        return _frequent_confusions(metrics, class_names)
    names = headings = _shorten_names(class_names)
    if metrics.num_classes > 10 or max(map(len, names)) > 10:  # too wide as headings of columns
        headings = [str(number) for number in range(metrics.num_classes)]
        names = [f'{number} {name}' for number, name in zip(headings, names)]
    rows = [
        [name] + [str(count) for count in row]
        for name, row in zip(names, metrics.confusion_matrix())
    ]
    return 'Confusion matrix (rows: label; columns: predicted class):\n' + _align_columns(
        [[''] + headings] + rows
    )


def _frequent_confusions(metrics, class_names):
    # The matrix may be too large to make.
    wrong = ~metrics.is_correct
    pairs = zip(metrics.labels[wrong].tolist(), metrics.predicted_classes[wrong].tolist())
    found = collections.Counter(sorted(pairs)).most_common(20)
    totals = np.bincount(metrics.labels)
    return '\n'.join(
        ['The most frequent confusions:' if found else 'No confusions']
        + [
            f'  {class_names[label]} taken for {class_names[predicted]}: {count} of {totals[label]}'
            for (label, predicted), count in found
        ]
    )


def mistakes(found, class_names):
    """Return a line per Mistake: predicted class, label, probability of the predicted class."""
    return '\n'.join(
        ['The most confident mistakes:' if found else 'No mistakes']
        + [
            f'  example {mistake.index}: {class_names[mistake.predicted_class]}, not {class_names[mistake.label]} '
            f'{mistake.probability:.2f}'
            for mistake in found
        ]
    )


def _align_columns(rows):
    """Join rows of text, the first column left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join(
        '  '.join([row[0].ljust(widths[0])] + list(map(str.rjust, row[1:], widths[1:])))
        for row in rows
    )


def markdown_table(header, rows):
    """Return a table in Markdown.

    Args:
      header: a list of strings.
      rows: a list of lists of strings and numbers.
    """
    lines = [header, ['---'] * len(header)] + rows
    escaped = ([str(cell).replace('|', r'\|') for cell in cells] for cells in lines)
    return '\n'.join(f'| {" | ".join(cells)} |' for cells in escaped)


def predictions_csv(metrics, class_names):
    """Return CSV with a row for each example, in order.

    A row has index (from 0), label (the class number) and probability of each class. The header has
    the names of the classes.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(['index', 'label'] + class_names)
    for index, (label, row) in enumerate(zip(metrics.labels, metrics.log_probabilities)):
        # 7 digits tell float32 to 5e-7 of itself
        probabilities = np.exp(row.astype(np.float64))
        writer.writerow([index, label] + [f'{probability:.7g}' for probability in probabilities])
    return text.getvalue()
