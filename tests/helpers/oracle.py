"""Reference formulations in NumPy, one example or one value at a time."""

import numpy as np
import tensorflow.compat.v1 as tf


def read_records(paths):
    """Return labels [n] and images [n, 32, 32, 3], uint8, of binary CIFAR-10 files."""
    records = np.concatenate([np.fromfile(path, np.uint8) for path in paths]).reshape(-1, 3073)
    return records[:, 0], records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def evaluation_images(images):
    """Return the evaluation images of the tutorial: centres of uint8 [n, 32, 32, 3],
    standardised."""
    with tf.Graph().as_default(), tf.Session() as session:
        centres = tf.image.resize_image_with_crop_or_pad(tf.cast(images, tf.float32), 24, 24)
        return session.run(tf.image.per_image_standardization(centres))


def _windows(x):
    """Return, for each channel, the sum of x over the channels at most 4 away."""
    channels = x.shape[-1]
    return np.stack([x[..., max(0, c - 4) : c + 5].sum(-1) for c in range(channels)], -1)


def lrn(x):
    """Return the local response normalisation by its definition, in x's precision."""
    return x * (1 + 0.001 / 9 * _windows(x * x)) ** -0.75


def lrn_gradient(x, dy):
    """Return the gradient of lrn by its derivatives.

    dy_i / dx_j = s_i^-b [i = j] - 2 a b x_i x_j s_i^(-b - 1) for |i - j| <= 4.
    """
    s = 1 + 0.001 / 9 * _windows(x * x)
    return dy * s**-0.75 - 2 * 0.001 / 9 * 0.75 * x * _windows(dy * x * s**-1.75)


def _conv_same(x, weights):
    size = weights.shape[0]
    padded = np.pad(x, [(0, 0), (size // 2, size // 2), (size // 2, size // 2), (0, 0)])
    height, width = x.shape[1:3]
    return sum(
        padded[:, i : i + height, j : j + width] @ weights[i, j]
        for i in range(size)
        for j in range(size)
    )


def max_pool(x):
    """Pool 3 x 3 with stride 2 and SAME padding, which pads even sizes only at the end."""
    padded = np.pad(x, [(0, 0), (0, 1), (0, 1), (0, 0)], constant_values=-np.inf)
    height, width = x.shape[1:3]
    return np.max(
        [padded[:, i : i + height : 2, j : j + width : 2] for i in range(3) for j in range(3)], 0
    )


def logits(images, variables):
    """Return the logits of the network in float64; `variables` by name."""

    def relu(x):
        return np.maximum(x, 0)

    def layer(name):
        return variables[name + '/weights'].astype(np.float64), variables[name + '/biases'].astype(
            np.float64
        )

    def convolution(name, x):
        weights, biases = layer(name)
        return _conv_same(x, weights) + biases

    x = lrn(max_pool(relu(convolution('conv1', images.astype(np.float64)))))
    x = max_pool(lrn(relu(convolution('conv2', x))))
    x = x.reshape(len(x), -1)
    for name in ('local3', 'local4'):
        weights, biases = layer(name)
        x = relu(x @ weights + biases)
    weights, biases = layer('softmax_linear')
    return x @ weights + biases


def cross_entropies(logits_, labels):
    """Return -log softmax(logits)[label] of each example."""
    shifted = logits_ - logits_.max(1, keepdims=True)
    return np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(labels)), labels]


def exported_probabilities(path, images):
    """Return the probabilities of a SavedModel, on the CPU; images: uint8 [n, 32, 32, 3]."""
    config = tf.ConfigProto(device_count={'GPU': 0})
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        loaded = tf.saved_model.load(session, ['serve'], path)
        signature = loaded.signature_def['predict_images_uint8']
        feed = {signature.inputs['images'].name: images}
        return session.run(signature.outputs['probabilities'].name, feed)
