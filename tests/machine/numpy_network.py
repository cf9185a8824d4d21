"""Operations of the network and their gradients in NumPy, in float64.

A gradient function takes dy, the gradient of the result, and then the arguments of the operation.
It returns the gradients of the arguments.
"""

import numpy as np

from tests.helpers.oracle import lrn as local_response_normalization, lrn_gradient, max_pool

_SHIFTS = [(i, j) for i in range(5) for j in range(5)]  # of a 5 x 5 filter


def _pad(x, before, after, value=0.0):
    return np.pad(x, [(0, 0), (before, after), (before, after), (0, 0)], constant_values=value)


def _patches(x):
    """Return the 5 x 5 patch around each position, [n height width, 25 in]."""
    _, height, width, channels = x.shape
    padded = _pad(x, 2, 2)
    shifted = [padded[:, i : i + height, j : j + width] for i, j in _SHIFTS]
    return np.concatenate(shifted, -1).reshape(-1, len(_SHIFTS) * channels)


def _as_matrix(weights):
    return weights.reshape(-1, weights.shape[-1])


def conv2d(x, weights):
    """Convolve [n, height, width, in] with [5, 5, in, out], stride 1, to the same size."""
    return (_patches(x) @ _as_matrix(weights)).reshape(*x.shape[:3], -1)


def conv2d_gradients(dy, x, weights):
    """Return the gradients of `conv2d`."""
    _, height, width, channels = x.shape
    dy = _as_matrix(dy)
    dpatches = (dy @ _as_matrix(weights).T).reshape(-1, height, width, len(_SHIFTS), channels)
    dx = _pad(np.zeros_like(x), 2, 2)
    for index, (i, j) in enumerate(_SHIFTS):
        dx[:, i : i + height, j : j + width] += dpatches[:, :, :, index]
    return [dx[:, 2:-2, 2:-2], (_patches(x).T @ dy).reshape(weights.shape)]


def max_pool_gradients(dy, x):
    """Return the gradients of `max_pool`, for windows with one maximum."""
    _, height, width, _ = x.shape
    windows = [  # the index of each of the 9 values of all windows in the padded tensor
        (slice(None), slice(i, i + height - 1, 2), slice(j, j + width - 1, 2))
        for i in range(3)
        for j in range(3)
    ]
    padded, dx = _pad(x, 0, 1, -np.inf), _pad(np.zeros_like(x), 0, 1)
    place = np.argmax([padded[window] for window in windows], 0)
    for index, window in enumerate(windows):
        dx[window] += dy * (place == index)
    return [dx[:, :-1, :-1]]


def local_response_normalization_gradients(dy, x):
    """Return the gradients of `local_response_normalization`."""
    return [lrn_gradient(x, dy)]


def matmul(x, weights):
    """Return x @ weights."""
    return x @ weights


def matmul_gradients(dy, x, weights):
    """Return the gradients of `matmul`."""
    return [dy @ weights.T, x.T @ dy]


def update(name, values, hparams, learning_rate):
    """Return the weights and the momentum after an update by hparams.optimizer.

    Args:
      name: of the variable, like 'conv1/weights'.
      values: the weights, their gradient, and the momentum before the update, arrays of one shape.
      hparams: an HParams.
      learning_rate: a float.
    """
    weights, gradient, momentum = values
    if hparams.optimizer == 'gradient_descent':
        return weights - learning_rate * gradient, momentum
    # Sutskever et al., 2013: Nesterov's momentum
    momentum = hparams.momentum * momentum + gradient
    step = gradient + hparams.momentum * momentum
    is_hidden = name.endswith('/weights') and not name.startswith('softmax_linear/')
    if hparams.optimizer == 'momentum' or not is_hidden:
        return weights - learning_rate * step, momentum
    matrix = _as_matrix(step)
    blocks = [orthogonalize(matrix[:, i : i + 64]) for i in range(0, matrix.shape[1], 64)]
    rate = learning_rate * hparams.matrix_learning_rate / hparams.initial_learning_rate
    change = rate * len(matrix) ** 0.5 * np.concatenate(blocks, 1)
    weights = weights - change.reshape(weights.shape)
    return weights * hparams.matrix_weight_rms / np.sqrt((weights**2).mean()), momentum


def orthogonalize(matrix):
    """Return what muon.orthogonalize computes, from the singular values of a matrix."""
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    s /= np.sqrt((s**2).sum())
    for _ in range(3):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return (u * s) @ v


def loss_gradients(images, labels, variables, hparams):
    """Return the gradients of model.loss.

    Args:
      images: [n, 24, 24, 3].
      labels: class numbers, [n].
      variables: a dict from names, like 'conv1/weights', to arrays.
      hparams: an HParams.

    Returns:
      A dict like `variables`.
    """
    gradients = {}

    def add(layer, gradient_function, dy, x):
        """Record the gradients of a layer's variables; return that of its input."""
        gradients[layer + '/biases'] = dy.reshape(-1, dy.shape[-1]).sum(0)
        dx, gradients[layer + '/weights'] = gradient_function(dy, x, variables[layer + '/weights'])
        return dx

    def layer(name, function, x):
        return function(x, variables[name + '/weights']) + variables[name + '/biases']

    conv1 = np.maximum(layer('conv1', conv2d, images), 0)
    pool1 = max_pool(conv1)
    norm1 = local_response_normalization(pool1)
    conv2 = np.maximum(layer('conv2', conv2d, norm1), 0)
    norm2 = local_response_normalization(conv2)
    flat = max_pool(norm2).reshape(len(images), -1)
    local3 = np.maximum(layer('local3', matmul, flat), 0)
    local4 = np.maximum(layer('local4', matmul, local3), 0)
    logits = layer('softmax_linear', matmul, local4)
    probabilities = np.exp(logits - logits.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)

    num_classes, smoothing = logits.shape[1], hparams.label_smoothing
    targets = (1 - smoothing) * np.eye(num_classes)[labels] + smoothing / num_classes
    dy = (probabilities - targets) / len(images)
    dy = add('softmax_linear', matmul_gradients, dy, local4)
    dy = add('local4', matmul_gradients, dy * (local4 > 0), local3)
    dy = add('local3', matmul_gradients, dy * (local3 > 0), flat)
    (dy,) = max_pool_gradients(dy.reshape(len(images), 6, 6, -1), norm2)
    (dy,) = local_response_normalization_gradients(dy, conv2)
    dy = add('conv2', conv2d_gradients, dy * (conv2 > 0), norm1)
    (dy,) = local_response_normalization_gradients(dy, pool1)
    (dy,) = max_pool_gradients(dy, conv1)
    add('conv1', conv2d_gradients, dy * (conv1 > 0), images)
    for name in ('local3/weights', 'local4/weights'):
        gradients[name] += hparams.fc_weight_decay * variables[name]
    return gradients
