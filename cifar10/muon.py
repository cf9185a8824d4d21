"""Muon: gradient descent with orthogonalized momentum of each weight matrix.

Keller Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon/. The update of a weight matrix is its momentum with all
singular values near 1. Directions with small gradients are then learned as fast as directions with
large gradients. Here, each block of 64 columns is orthogonalized separately.
"""

import tensorflow.compat.v1 as tf

# Jordan et al. use 5. On held-out images 3 are as good (docs/recipes.md), and faster.
_ITERATIONS = 3
# From Jordan et al. Three iterations map singular values from 0.018 to 1 into about 0.68 to 1.20.
_COEFFICIENTS = 3.4445, -4.7750, 2.0315
# A single block of the 384 columns of local3 would take several times as long.
_BLOCK_COLUMNS = 64


def orthogonalize(matrices, scale=1.0):
    """Bring the singular values of matrices near `scale` by Newton-Schulz iterations.

    Division by the Frobenius norm gives singular values from 0 to 1. An iteration replaces X by
    X (a + b G + c G^2) with G = X^T X. All factors are polynomials of the first G, and G is far
    smaller than X. So X is multiplied only once, by the product of the factors.

    The iterations of all matrices are batched. Products with the matrices themselves are not,
    because a CPU computes them in parallel.

    Args:
      matrices: list of float32 [rows, columns], of one shape, with at least as many rows as
        columns.
      scale: a scalar.

    Returns:
      A list like `matrices`.
    """
    a, b, c = _COEFFICIENTS
    grams = tf.stack([tf.matmul(matrix, matrix, transpose_a=True) for matrix in matrices])
    inverse_norms = tf.rsqrt(tf.linalg.trace(grams) + 1e-24)[:, None, None]  # zeros stay zeros
    grams *= tf.square(inverse_norms)
    products = identity = tf.eye(int(grams.shape[2]))
    for _ in range(_ITERATIONS):
        factors = a * identity + b * grams + c * tf.matmul(grams, grams)
        products = factors if products is identity else tf.matmul(products, factors)
        grams = tf.matmul(tf.matmul(grams, factors), factors)
    products = tf.unstack(products * (inverse_norms * scale))
    return [tf.matmul(matrix, product) for matrix, product in zip(matrices, products)]


class Muon(tf.train.MomentumOptimizer):
    """Nesterov momentum, orthogonalized for the weights of hidden layers.

    The weights of a convolution [height, width, in, out] are a matrix [height * width * in, out].
    Blocks of at most 64 columns are orthogonalized. The elements of the update have a root
    mean square of about `matrix_learning_rate`.
    """

    def __init__(
        self, learning_rate, momentum, matrix_learning_rate, matrix_weight_decay, matrix_weight_rms
    ):
        """Create the optimizer.

        Args:
          learning_rate: a scalar, for the other variables.
          momentum: a float.
          matrix_learning_rate: a scalar, for the weights of hidden layers.
          matrix_weight_decay: these weights are multiplied by 1 - matrix_learning_rate *
            matrix_weight_decay per step. The decay is not part of the gradient, because
            orthogonalization would change its size (Loshchilov and Hutter, 2017, arXiv
            1711.05101).
          matrix_weight_rms: if it is not 0, these weights are scaled to this root mean square after
            each update. The relative size of an update then depends on the learning rate only
            (Jordan, 2024, airbench94_muon.py of github.com/KellerJordan/cifar10-airbench).
        """
        super().__init__(learning_rate, momentum, use_nesterov=True, name='Muon')
        self._matrix_learning_rate = matrix_learning_rate
        self._matrix_weight_decay = matrix_weight_decay
        self._matrix_weight_rms = matrix_weight_rms

    def _apply_dense(self, gradient, variable):
        apply = self._apply_matrix if _is_hidden(variable) else super()._apply_dense
        return apply(gradient, variable)

    def _resource_apply_dense(self, gradient, variable):
        apply = self._apply_matrix if _is_hidden(variable) else super()._resource_apply_dense
        return apply(gradient, variable)

    def _apply_matrix(self, gradient, variable):
        momentum, columns = self.get_slot(variable, 'momentum'), int(variable.shape[-1])
        velocity = self._momentum * momentum + gradient
        matrix = tf.reshape(gradient + self._momentum * velocity, [-1, columns])
        scale = self._matrix_learning_rate * int(matrix.shape[0]) ** 0.5
        width = min(columns, _BLOCK_COLUMNS)
        num_missing = -columns % width
        if num_missing:  # Columns of zeros do not change the other columns.
            matrix = tf.pad(matrix, [[0, 0], [0, num_missing]])
        blocks = tf.split(matrix, (columns + num_missing) // width, 1)
        update = tf.concat(orthogonalize(blocks, scale), 1)
        update = tf.reshape(update[:, :columns] if num_missing else update, variable.shape)
        weight_factor = 1 - self._matrix_learning_rate * self._matrix_weight_decay
        weights = weight_factor * variable - update
        if self._matrix_weight_rms:
            weights *= self._matrix_weight_rms * tf.rsqrt(
                tf.reduce_mean(tf.square(weights)) + 1e-24
            )
        return tf.group(momentum.assign(velocity), variable.assign(weights))


def _is_hidden(variable):
    """Return True for the weights of a hidden layer."""
    name = variable.op.name
    return name.endswith('/weights') and not name.startswith('softmax_linear/')
