"""Predictions as lines of text, JSON and CSV."""

import csv
import io
import json

from cifar10 import errors


def text(predictions):
    """Lines like 'cat.jpg: cat 0.912, dog 0.053'."""
    return ''.join(
        '%s: %s\n'
        % (
            errors.printable(told.path),
            ', '.join('%s %.3f' % pair for pair in zip(told.names, told.probabilities)),
        )
        for told in predictions
    )


def json_lines(predictions):
    """Lines with an object each: the file, and for each of its predictions class, name and
    probability."""
    return ''.join(
        json.dumps(
            {
                'file': told.path,
                'predictions': [
                    {'class': number, 'name': name, 'probability': float('%.7g' % probability)}
                    for number, name, probability in zip(
                        told.classes, told.names, told.probabilities
                    )
                ],
            }
        )
        + '\n'
        for told in predictions
    )


def csv_header(top_k):
    """The line that names the columns of csv_lines."""
    return _csv(
        [
            ['file']
            + ['%s_%d' % (what, i) for i in range(1, top_k + 1) for what in ('name', 'probability')]
        ]
    )


def csv_lines(predictions):
    """Lines with the file, and name and probability of each class."""
    return _csv(
        [
            [errors.printable(told.path)]
            + [
                value
                for name, probability in zip(told.names, told.probabilities)
                for value in (name, '%.7g' % probability)
            ]
            for told in predictions
        ]
    )


def _csv(rows):
    lines = io.StringIO()
    csv.writer(lines, lineterminator='\n').writerows(rows)
    return lines.getvalue()
