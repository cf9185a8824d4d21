"""Figures of an evaluation, drawn by matplotlib (imported lazily)."""

import importlib.util
import io
import math
import os

import numpy as np

from cifar10.report import text_report
from cifar10.system import files

_MAX_NUMBERED = 30  # classes; above, the cells of the confusion matrix have no numbers
_COLUMNS = 6  # of the figure of mistakes


def is_available():
    """Return True if matplotlib is installed."""
    return importlib.util.find_spec('matplotlib') is not None


def draw(result):
    """Return a dict from names to figures of a metrics.Result.

    The dict is empty without matplotlib.
    """
    if not is_available():
        return {}
    metrics, class_names = result.metrics, _display_names(result.class_names)
    return {
        'reliability': reliability_diagram(metrics.calibration()),
        'mistakes': mistakes(result.mistakes, class_names),
        'confusion_matrix': confusion_matrix(metrics.confusion_matrix(), class_names),
    }


def write(result, directory):
    """Write the figures of a metrics.Result as PNG and SVG files.

    Raises:
      UserError: a file cannot be written.
    """
    for name, figure in draw(result).items():
        for file_format in ('png', 'svg'):
            path = os.path.join(directory, f'{name}.{file_format}')
            files.atomic_write(path, image_bytes(figure, file_format), 'name another directory')


def show(result):
    """Show the figures of a metrics.Result in a notebook; none without matplotlib."""
    from IPython import display

    for figure in draw(result).values():
        display.display(display.Image(image_bytes(figure, 'png')))


def image_bytes(figure, file_format):
    """Return the figure as the bytes of an image file."""
    content = io.BytesIO()
    figure.savefig(content, format=file_format, bbox_inches='tight')
    return content.getvalue()


def _display_names(class_names):
    """Return the class names, shortened.

    If the font lacks a character of a name, the class number replaces the name.
    """
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    return [
        text_report.shorten(name, 20).replace('$', r'\$')  # matplotlib would draw a formula
        if all(font.get_char_index(ord(character)) for character in name)
        else str(number)
        for number, name in enumerate(class_names)
    ]


def confusion_matrix(matrix, class_names):
    """Draw the confusion matrix: correct predictions in blue, wrong ones in red.

    The color intensity is the square root of the fraction of the row, so 1 % is visible. The scale
    is fixed, so figures are comparable.

    Args:
      matrix: int64 [classes, classes], rows: label, columns: predicted class.
      class_names: in label order.
    """
    from matplotlib import figure

    num_classes = len(matrix)
    side = min(14, max(4, 0.7 * num_classes))
    fig = figure.Figure(figsize=(side, side))
    axes = fig.subplots()
    fractions = matrix / np.maximum(1, matrix.sum(1, keepdims=True))
    signs = 2 * np.eye(num_classes) - 1
    axes.imshow(signs * np.sqrt(fractions), 'RdBu', vmin=-1, vmax=1)
    if num_classes <= _MAX_NUMBERED:
        for (row, column), count in np.ndenumerate(matrix):
            color = 'white' if fractions[row, column] > 0.3 else 'black'
            axes.text(column, row, count, color=color, ha='center', va='center')
    ticks = range(0, num_classes, math.ceil(num_classes / 100))  # space for 100
    labels = [class_names[tick] for tick in ticks]
    font_size = 10 if num_classes <= _MAX_NUMBERED else 7
    axes.set_xticks(ticks, labels, rotation=90, fontsize=font_size)
    axes.set_yticks(ticks, labels, fontsize=font_size)
    axes.set(
        title=f'Confusion matrix: {matrix.trace()} of {matrix.sum()} correct',
        xlabel='predicted class',
        ylabel='label',
    )
    return fig


def reliability_diagram(calibration):
    """Draw accuracy and number of examples by confidence, from a metrics.Calibration."""
    from matplotlib import figure

    # Older versions of matplotlib draw no bars if the first value is nan.
    counts, confidences, accuracies = map(np.nan_to_num, calibration)
    fig = figure.Figure(figsize=(5.5, 6))
    above, below = fig.subplots(2, sharex=True, gridspec_kw={'height_ratios': [4, 1]})
    width = 1 / len(counts)
    centers = (np.arange(len(counts)) + 0.5) * width
    above.bar(centers, accuracies, 0.9 * width, label='accuracy')
    above.bar(
        centers,
        confidences - accuracies,
        0.9 * width,
        accuracies,
        fill=False,
        edgecolor='tab:red',
        hatch='//',
        label='gap to the mean confidence',
    )
    above.plot([0, 1], [0, 1], '--', color='black', label='no gap')
    above.legend()
    above.set(
        title=f'Reliability: expected calibration error {calibration.expected_calibration_error:.3f}',
        ylabel='accuracy',
        xlim=(0, 1),
        ylim=(0, 1),
    )
    below.bar(centers, counts, 0.9 * width, color='gray')
    below.set(xlabel='confidence: probability of the predicted class', ylabel='examples')
    return fig


def mistakes(found, class_names):
    """Draw the image, predicted class, probability and label of each Mistake."""
    from matplotlib import figure

    rows = max(1, math.ceil(len(found) / _COLUMNS))
    fig = figure.Figure(figsize=(2 * _COLUMNS, 2.4 * rows))
    # One Axes object for all images is several times faster than one per image.
    axes = fig.add_axes([0, 0, 1, 1])
    for index, mistake in enumerate(found):
        row, column = divmod(index, _COLUMNS)
        top = 1.2 * row
        image = mistake.image.transpose(1, 2, 0)
        axes.imshow(image, extent=(column + 0.02, column + 0.98, top + 0.96, top))
        caption = (
            f'predicted {class_names[mistake.predicted_class]}\n'
            f'({mistake.probability:.2f}), label {class_names[mistake.label]}'
        )
        axes.text(column + 0.5, top - 0.02, caption, fontsize=8, ha='center', va='bottom')
    axes.set_title('The most confident mistakes' if found else 'No mistakes')
    axes.set(xlim=(0, _COLUMNS), ylim=(1.2 * rows - 0.24, -0.24))
    axes.axis('off')
    return fig
