"""The predictions of an evaluation in a file, for programs of others."""

import csv
import io

import numpy as np

from cifar10 import files
from cifar10.report import captions


def write(path, scores, class_names):
    """Writes a row for each example, in order: index (from 0), label (the number of the class),
    probability of each class.

    The file has comma-separated values, UTF-8, lines that end with a line feed, and a header with
    the names of the classes.

    Args:
      path: the file, written whole or not at all.
      scores: a Scores.
      class_names: in label order; None heads the columns with the numbers of the classes.

    Raises:
      UserError: it cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(['index', 'label'] + captions.names(class_names, scores.num_classes))
    for index, (label, row) in enumerate(zip(scores.labels, scores.log_probabilities)):
        # 7 digits tell float32 to 5e-7 of itself
        probabilities = np.exp(row.astype(np.float64)).tolist()
        writer.writerow([index, label] + ['%.7g' % probability for probability in probabilities])
    files.write_whole(path, text.getvalue(), 'name another file')
