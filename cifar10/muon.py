"""Muon: gradient descent with momentum made orthogonal, a matrix at a time.

Keller Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon/. A weight matrix moves by its momentum with all singular
values brought near 1, here those of each block of 64 columns, so that directions with small
gradients are learnt as fast as those with large ones.
"""

import tensorflow.compat.v1 as tf

# Jordan et al. do 5; on held-out images 3 were as good (docs/recipes.md), and they cost less
_ITERATIONS = 3
# by Jordan et al.; 3 iterations bring singular values over 0.018 between 0.68 and 1.21
_COEFFICIENTS = 3.4445, -4.7750, 2.0315
# the products for all 384 columns of local3 at once would cost several times as much
_BLOCK_COLUMNS = 64


def orthogonalize(matrix, scale=1.0):
    """Bring the singular values of a matrix near `scale` by Newton-Schulz iterations.

    They start between 0 and 1, divided by the Frobenius norm, and one iteration takes X to X (a + b
    G + c G^2) with G = X^T X. All these factors are polynomials of the first G, so they are
    multiplied with each other, and only their product with X: G is far smaller than X.

    Args:
      matrix: float32 [rows, columns] with at least as many rows as columns.
      scale: a scalar.

    Returns:
      float32 [rows, columns].
    """
    a, b, c = _COEFFICIENTS
    gram = tf.matmul(matrix, matrix, transpose_a=True)
    inverse_norm = tf.rsqrt(tf.linalg.trace(gram) + 1e-24)  # zeros stay zeros
    gram *= tf.square(inverse_norm)
    product = identity = tf.eye(int(matrix.shape[1]))
    for _ in range(_ITERATIONS):
        factor = a * identity + b * gram + c * tf.matmul(gram, gram)
        product = tf.matmul(product, factor)
        gram = tf.matmul(tf.matmul(gram, factor), factor)
    return tf.matmul(matrix, product * (inverse_norm * scale))


class Muon(tf.train.MomentumOptimizer):
    """Nesterov momentum, orthogonalised for the weights of hidden layers.

    A convolution's weights [height, width, in, out] count as a matrix [height * width * in, out].
    Matrices are made orthogonal in blocks of at most 64 columns. The update's elements have a root
    mean square of about `matrix_learning_rate`.
    """

    def __init__(self, learning_rate, momentum, matrix_learning_rate, matrix_weight_decay):
        """Make the optimizer.

        Args:
          learning_rate: for the other variables, a scalar.
          momentum: a float.
          matrix_learning_rate: for the weights of hidden layers, a scalar.
          matrix_weight_decay: in each step these weights shrink by this times matrix_learning_rate.
            It is not part of the gradient, because orthogonalisation would change its size
            (Loshchilov and Hutter, 2017, arXiv 1711.05101).
        """
        super().__init__(learning_rate, momentum, use_nesterov=True, name='Muon')
        self._matrix_learning_rate = matrix_learning_rate
        self._matrix_weight_decay = matrix_weight_decay

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
        blocks = [
            orthogonalize(matrix[:, first : first + _BLOCK_COLUMNS], scale)
            for first in range(0, columns, _BLOCK_COLUMNS)
        ]
        update = tf.reshape(tf.concat(blocks, 1), variable.shape)
        weight_factor = 1 - self._matrix_learning_rate * self._matrix_weight_decay
        return tf.group(
            momentum.assign(velocity), variable.assign(weight_factor * variable - update)
        )


def _is_hidden(variable):
    """Return whether a variable is the weights of a hidden layer."""
    name = variable.op.name
    return name.endswith('/weights') and not name.startswith('softmax_linear/')
