"""Tables of an evaluation as text, and predictions as CSV."""

import collections
import csv
import io
import math

import numpy as np

from cifar10.report.metrics import ClassMetrics


def full_report(result):
    """Return all tables of a metrics.Result."""
    metrics, class_names = result.metrics, result.class_names
    calibration = metrics.calibration()
    return '\n'.join(
        [
            classification_report(metrics, class_names),
            confusion_matrix(metrics, class_names),
            f'Calibration: expected error {calibration.expected_calibration_error:.3f} ({len(calibration.counts)} bins), '
            f'mean confidence {metrics.confidences.mean():.3f}, accuracy {metrics.accuracy:.3f}',
            mistakes(result.mistakes[:10], class_names, result.image_files),
        ]
    )


def classification_report(metrics, class_names):
    """Return a table with a column per field of ClassMetrics, and a last row for all classes."""
    rows = zip(
        [*_shorten_names(class_names), 'all'],
        # With one prediction per example, precision and recall of all classes are the accuracy.
        *map(
            np.append, metrics.per_class_metrics(), [metrics.accuracy] * 2 + [metrics.num_examples]
        ),
    )
    return _align_columns(
        [['class', *ClassMetrics._fields]]
        + [[name, *map(_format_number, numbers)] for name, *numbers in rows]
    )


def shorten(text, length):
    """Return the text, truncated to `length` characters with '...' at the end."""
    return text if len(text) <= length else text[: length - 3].rstrip() + '...'


def _shorten_names(names):
    """Return the names, shortened if they stay distinct."""
    short = [shorten(name, 40) for name in names]
    return short if len(set(short)) == len(names) else names


def _format_number(value):
    """Format a count, or a fraction, which can be nan."""
    if isinstance(value, np.integer):
        return str(value)
    return '-' if math.isnan(value) else f'{value:.3f}'


def confusion_matrix(metrics, class_names):
    """Return the confusion matrix, or above 20 classes the most frequent confusions."""
    if metrics.num_classes > 20:  # too wide for a terminal
        return _frequent_confusions(metrics, class_names)
    names = headings = _shorten_names(class_names)
    if metrics.num_classes > 10 or max(map(len, names)) > 10:  # too wide for headings
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
    wrong = ~metrics.is_correct
    pairs = zip(metrics.labels[wrong].tolist(), metrics.predicted_classes[wrong].tolist())
    found = collections.Counter(sorted(pairs)).most_common(20)
    totals = np.bincount(metrics.labels)
    return '\n'.join(
        ['The most frequent confusions:' if found else 'No confusions']
        + [
            f'  {class_names[label]} predicted as {class_names[predicted]}: {count} of {totals[label]}'
            for (label, predicted), count in found
        ]
    )


def mistakes(found, class_names, image_files):
    """Return a title and one line per Mistake: image file, predicted class, probability, label."""
    files = {i: f' ({name})' for i, name in image_files.items()}
    return '\n'.join(
        ['The most confident mistakes:' if found else 'No mistakes']
        + [
            f'  example {mistake.index}{files.get(mistake.index, "")}: '
            f'predicted {class_names[mistake.predicted_class]} ({mistake.probability:.2f}), '
            f'label {class_names[mistake.label]}'
            for mistake in found
        ]
    )


def _align_columns(rows):
    """Join rows, with the first column left-aligned and the others right-aligned."""
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


def predictions_csv(result):
    """Return CSV with one row per example: index (from 0), label (class number), probabilities.

    The header names each column of probabilities by its class. If the image files of a
    metrics.Result are known, a column `file` follows the index.
    """
    metrics, image_files, text = result.metrics, result.image_files, io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(['index', *(['file'] if image_files else []), 'label', *result.class_names])
    for index, (label, row) in enumerate(zip(metrics.labels, metrics.log_probabilities)):
        names = [image_files.get(index)] if image_files else []
        # 7 digits: relative error at most 5e-7
        probabilities = np.exp(row.astype(np.float64))
        writer.writerow([index, *names, label, *(f'{value:.7g}' for value in probabilities)])
    return text.getvalue()
