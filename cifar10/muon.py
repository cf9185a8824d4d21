"""Muon: gradient descent with orthogonalized momentum of each weight matrix.

Keller Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon/. The update of a weight matrix is its momentum with all
singular values near 1. Directions with small gradients are then learned as fast as directions with
large gradients. Here, each block of 64 columns is orthogonalized separately.
"""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import network
from cifar10.system import machine

# Jordan et al. use 5. On held-out images 3 are as good (docs/measurements.md), and faster.
_ITERATIONS = 3
# From Jordan et al. Three iterations map singular values from 0.018 to 1 into about 0.68 to 1.20.
_COEFFICIENTS = 3.4445, -4.7750, 2.0315
# A single block of the 384 columns of local3 would take several times as long.
_BLOCK_COLUMNS = 64


def orthogonalize(matrices, rms):
    """Make the singular values of each matrix nearly equal by Newton-Schulz iterations.

    Division by the Frobenius norm gives singular values from 0 to 1. An iteration replaces X by
    X (a + b G + c G^2) with G = X^T X. All factors are polynomials of the first G, and G is far
    smaller than X. So X is multiplied only once, by the product of the factors, and the iterations
    of all matrices are batched. With H = sqrt(c) G, a factor is (H + k)^2 + m.

    Args:
      matrices: list of float32 [rows, columns] or [batch, rows, columns]. All have the same number
        of columns.
      rms: a scalar, about the root mean square of the elements of each result.

    Returns:
      A list like `matrices`. The singular values of a result are near rms * sqrt(rows).
    """
    a, b, c = _COEFFICIENTS
    columns = int(matrices[0].shape[-1])
    k, m = [x * np.eye(columns, dtype=np.float32) for x in (b / (2 * c**0.5), a - b**2 / (4 * c))]
    grams = [
        tf.reshape(tf.matmul(matrix, matrix, transpose_a=True), [-1, columns, columns])
        for matrix in matrices
    ]
    counts = [int(gram.shape[0]) for gram in grams]
    rows = np.repeat([int(matrix.shape[-2]) for matrix in matrices], counts)
    grams = tf.concat(grams, 0)
    inverse_norms = tf.rsqrt(tf.linalg.trace(grams) + 1e-24)  # zeros stay zeros
    grams *= (c**0.5 * tf.square(inverse_norms))[:, None, None]
    products = None
    for _ in range(_ITERATIONS):
        shifted = grams + k
        factors = tf.matmul(shifted, shifted) + m
        products = factors if products is None else tf.matmul(products, factors)
        grams = tf.matmul(tf.matmul(grams, factors), factors)
    products *= (inverse_norms * (rms * np.sqrt(rows.astype(np.float32))))[:, None, None]
    return [
        tf.matmul(matrix, product if len(matrix.shape) == 3 else product[0])
        for matrix, product in zip(matrices, tf.split(products, counts))
    ]


def _to_blocks(tensor, on_gpu):
    """Return [..., columns] as matrices of 64 columns for `orthogonalize`.

    The last one is padded with zeros, which do not change the other columns. A GPU computes with
    all blocks at once, the cores of a CPU with one block each.
    """
    matrix = tf.reshape(tensor, [-1, int(tensor.shape[-1])])
    rows, columns = matrix.shape.as_list()
    if columns % _BLOCK_COLUMNS:
        matrix = tf.pad(matrix, [[0, 0], [0, -columns % _BLOCK_COLUMNS]])
    if on_gpu:
        return [tf.transpose(tf.reshape(matrix, [rows, -1, _BLOCK_COLUMNS]), [1, 0, 2])]
    return [matrix[:, i : i + _BLOCK_COLUMNS] for i in range(0, columns, _BLOCK_COLUMNS)]


def _from_blocks(blocks, shape):
    """Return the tensor of a shape from the matrices of `_to_blocks`."""
    if len(blocks[0].shape) == 3:
        blocks = [tf.reshape(tf.transpose(blocks[0], [1, 0, 2]), [int(blocks[0].shape[1]), -1])]
    matrix = tf.concat(blocks, 1)
    columns = int(shape[-1])
    return tf.reshape(matrix if matrix.shape[1] == columns else matrix[:, :columns], shape)


class Muon(tf.train.MomentumOptimizer):
    """Nesterov momentum, orthogonalized for the weights of hidden layers.

    The weights of a convolution [height, width, in, out] are a matrix [height * width * in, out].
    Blocks of at most 64 columns are orthogonalized. The elements of the update have a root
    mean square of about `matrix_learning_rate`.
    """

    def __init__(self, learning_rate, momentum, matrix_learning_rate, matrix_weight_rms):
        """Create the optimizer.

        Args:
          learning_rate: a scalar, for the other variables.
          momentum: a float.
          matrix_learning_rate: a scalar, for the weights of hidden layers.
          matrix_weight_rms: these weights are scaled to this root mean square after each update.
            The relative size of an update then depends on the learning rate only (Jordan, 2024,
            airbench94_muon.py of github.com/KellerJordan/cifar10-airbench).
        """
        super().__init__(learning_rate, momentum, use_nesterov=True, name='Muon')
        self._matrix_learning_rate = matrix_learning_rate
        self._matrix_weight_rms = matrix_weight_rms

    def _prepare(self):
        super()._prepare()
        self._on_gpu = []

    def _apply_dense(self, gradient, variable):
        apply = self._apply_matrix if _is_hidden(variable) else super()._apply_dense
        return apply(gradient, variable)

    def _resource_apply_dense(self, gradient, variable):
        apply = self._apply_matrix if _is_hidden(variable) else super()._resource_apply_dense
        return apply(gradient, variable)

    def _apply_matrix(self, gradient, variable):
        if machine.is_gpu(variable.device):
            self._on_gpu.append((gradient, variable))
            return tf.no_op()
        return self._apply_matrices([(gradient, variable)])

    def _finish(self, update_ops, name_scope):
        if self._on_gpu:  # The iterations of all matrices are batched.
            with tf.device(self._on_gpu[0][1].device):
                update_ops = [*update_ops, self._apply_matrices(self._on_gpu)]
        return super()._finish(update_ops, name_scope)

    def _apply_matrices(self, gradients):
        """Return an op that updates weights of hidden layers on one device.

        Args:
          gradients: list of (gradient, variable).
        """
        ops, directions = [], []
        for gradient, variable in gradients:
            momentum = self.get_slot(variable, 'momentum')
            # With v <- m v + g, the direction is g + m v. It is divided by 1 + m, because its
            # length has no effect: then the product with v does not wait for the gradient.
            old = self._momentum**2 / (1 + self._momentum) * momentum
            directions.append(_to_blocks(old + gradient, machine.is_gpu(variable.device)))
            with tf.control_dependencies([old]):  # It reads v before the assignment.
                ops.append(momentum.assign(self._momentum * momentum + gradient))
        updates = iter(orthogonalize(sum(directions, []), self._matrix_learning_rate))
        for (_, variable), blocks in zip(gradients, directions):
            weights = self._updated(variable, [next(updates) for _ in blocks])
            ops.append(variable.assign(weights))
        return tf.group(*ops)

    def _updated(self, variable, updates):
        """Return the new weights, from the updates of their blocks."""
        old_blocks = _to_blocks(variable, machine.is_gpu(variable.device))
        blocks = [old - update for old, update in zip(old_blocks, updates)]
        # sum(block^2) / 2, divided by its value at the wanted root mean square
        ratio = tf.add_n([tf.nn.l2_loss(block) for block in blocks]) / (
            variable.shape.num_elements() * self._matrix_weight_rms**2 / 2
        )
        return _from_blocks([tf.rsqrt(ratio + 1e-24) * block for block in blocks], variable.shape)


def _is_hidden(variable):
    """Return True for the weights of a hidden layer: all matrices and kernels but the last one."""
    matrices = [other for other in tf.trainable_variables() if len(other.shape) > 1]
    last = tf.get_collection(network.OUTPUT_WEIGHTS) or matrices[-1:]
    return len(variable.shape) > 1 and variable.op.name not in [other.op.name for other in last]
