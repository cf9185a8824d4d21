"""Changes of docs/exercises.md: network files, replacements, and layers in NumPy."""

import re
import textwrap

import numpy as np

from cifar10.runs import checkpoint
from tests.helpers import checkouts, pages

PAGE = pages.read('exercises.md')
NUM_FILTERS, DROPOUT, LOSS, DEVICES, RESIDUAL, BATCH_NORM, ADAM, COSINE, PADDING = [
    item.text for item in pages.items('exercises.md') if item.is_python
][:9]
ROWS = re.findall(r'^\| [^|]+ \| (`.*`) \| (\d+) \|$', PAGE, re.MULTILINE)
MODEL = checkouts.read_module('model.py')
AVERAGE = '/ExponentialMovingAverage'
INITIAL = {'moving_mean': 0, 'moving_variance': 1}  # statistics of batch normalization


def assert_moved(path, number=20):
    """Assert that no statistic in a checkpoint has its initial value."""
    found = statistics(checkpoint.read(path).values)
    assert len(found) == number
    for name, value in found.items():
        assert (value != INITIAL[name.replace(AVERAGE, '').split('/')[-1]]).all(), name


def page_number(text):
    """Return the number of parameters that the page has after a text."""
    return int(re.search(text + r'.*?`Network: (\d+) parameters`', PAGE, re.DOTALL).group(1))


def _change_row(change):
    """Return MODEL with the change in a row of the table."""
    kinds = 'instead of|in the line before|in the line after that of'
    new, kind, old = re.fullmatch(rf'`(.*?)`,? ({kinds}) `(.*?)`', change).groups()
    if kind == 'instead of':
        return checkouts.replace(MODEL, [(re.escape(old), new)])
    pattern = re.escape(old) if 'before' in kind else old + ' = .*'
    (line,) = re.findall(rf'(?<=\n) +{pattern}\n', MODEL)
    new = f'    {new}\n'
    new = new + line if 'before' in kind else line + new
    return checkouts.replace(MODEL, [(re.escape(line), new)])


def _on_two_devices():
    """Return MODEL with two lines of tf.device, for CPUs."""
    found = re.search(
        r'    pool2 = _conv.*\n((.*\n)*?)    flat = .*\n((.*\n)+?)(?=    return log)', MODEL
    )
    layers = textwrap.indent(found.group(1) + found.group(3), '    ')
    return MODEL.replace(found.group(), DEVICES.replace('gpu', 'cpu') + layers)


def _with_batch_norm():
    """Return MODEL with batch normalization in its convolutional layers."""
    (function,) = re.findall(r'def batch_norm\((?:.*\n)+?\n\n(?=def)', RESIDUAL)
    source = checkouts.replace(
        MODEL,
        [
            (r'@cpu_kernels.per_image.*\n', ''),
            (r'        activations = tf.nn.relu\(tf.nn.bias_add.*\n', BATCH_NORM),
            (r'(?=def _conv_layer)', function),
        ],
    )
    calls = r'(_convolutional_layers\(images, hparams|_conv_layer\(.*dtype)\)'
    return re.sub(calls, r'\1, is_training)', source)


NETWORKS = {
    'residual': RESIDUAL,
    'fewer_filters': _change_row(ROWS[0][0]),
    'one_more_convolution': _change_row(ROWS[1][0]),
    'one_more_layer': _change_row(ROWS[2][0]),
    'renamed': _change_row(ROWS[3][0]),
    'dropout': checkouts.replace(MODEL, [(r"(?<=\n)(?=    with .*'softmax_linear')", DROPOUT)]),
    'another_loss': checkouts.replace(MODEL, [(r'def loss\((.*\n)*', LOSS)]),
    'two_devices': _on_two_devices(),
    'batch_norm': _with_batch_norm(),
}


CREATE = r"(?=    if hparams\.optimizer == 'gradient_descent')", ADAM
RATE = r'(?=        else:  # linear\n)', COSINE
SAMPLE = r'last = HEIGHT - image_size', re.search(r'`(last = .*?)`', PAGE).group(1)
DISTORT = r'(?=    rows, columns, flip, contrast_factors = )', PADDING


def write(directory, name):
    """Write one of NETWORKS to a file in a directory; return its path."""
    path = directory / f'{name}.py'
    path.write_text(NETWORKS[name])
    return str(path)


def statistics(values):
    """Return the statistics of batch normalization, and their averages."""
    pattern = f'.*/moving_(mean|variance)({AVERAGE})?'
    return {name: value for name, value in values.items() if re.fullmatch(pattern, name)}


def relu(x):
    return np.maximum(x, 0)


def conv(x, weights, stride):
    """Return a convolution with padding SAME."""
    size, out = len(weights), -(-x.shape[1] // stride)
    missing = (out - 1) * stride + size - x.shape[1]
    pads = (missing // 2, missing - missing // 2)
    x, stop = np.pad(x, [(0, 0), pads, pads, (0, 0)], 'constant'), (out - 1) * stride + 1
    return sum(
        x[:, i : i + stop : stride, j : j + stop : stride] @ weights[i, j]
        for i in range(size)
        for j in range(size)
    )


class NumpyLayers:
    """Batch normalization in NumPy, in float64.

    Attributes:
      statistics: (mean, variance, number of values) of the batch, by the name of the layer.
    """

    def __init__(self, values, is_training):
        self._values = {name: value.astype(np.float64) for name, value in values.items()}
        self._is_training, self.statistics = is_training, {}

    def __call__(self, x, name, stride=1):
        value = {key: self._values.get(f'{name}/{key}') for key in ('scale', 'offset', *INITIAL)}
        x = conv(x, self._values[name + '/weights'], stride)
        mean, variance = value['moving_mean'], value['moving_variance']
        if self._is_training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            self.statistics[name] = mean, variance, x.size // x.shape[3]
        return (x - mean) / np.sqrt(variance + 1e-3) * value['scale'] + value['offset']

    def logits(self, x):
        values = [self._values['softmax_linear/' + name] for name in ('weights', 'biases')]
        return x.mean((1, 2)) @ values[0] + values[1]


def residual_logits(x, layer):
    """Return the logits of the page's network; `layer` is a NumpyLayers."""
    x = relu(layer(x, 'conv', 2))
    for block in ('block1', 'block2'):
        y = relu(layer(x, block + '/conv1'))
        x = relu(x + layer(y, block + '/conv2'))
    return layer.logits(x)
