"""TensorFlow 1 for programs: the truth of a gradient, and names."""

import pytest

from tests.helpers import programs

pytestmark = pytest.mark.slow

START = 'import tensorflow as tf\nx = tf.Variable(2.0)\ny = tf.Variable(1.0)\n'


def _run(tmp_path, text):
    (tmp_path / 'program.py').write_text(START + text)
    return programs.run('cifar10_run', str(tmp_path / 'program.py'))


def test_the_truth_of_gradients(tmp_path):
    status, stdout, stderr = _run(
        tmp_path,
        'optimizer = tf.train.GradientDescentOptimizer(1.0)\n'
        'for grad, variable in optimizer.compute_gradients(x * x, [x, y]):\n'
        '    if grad:\n'
        '        print("has", variable.op.name)\n'
        '    if not grad:\n'
        '        print("lacks", variable.op.name)\n',
    )
    assert (status, stdout) == (0, 'has Variable\nlacks Variable_1\n')
    path = tmp_path / 'program.py'
    assert stderr == ''.join(
        f'program.py: {path}:{line}: `if grad:` means `if grad is not None:`\n' for line in (6, 8)
    )


@pytest.mark.parametrize(
    'text',
    [
        'if x > 1:\n  pass',
        'if is_training:\n  pass',
        'while grad:\n  pass',
        'if grad and x:\n  pass',
        'print(bool(grad))',
    ],
)
def test_any_other_truth_is_an_error(tmp_path, text):
    status, stdout, stderr = _run(tmp_path, 'grad = is_training = x > 1\n' + text)
    assert (status, stdout) == (1, '')
    assert 'a tensor has no truth value' in stderr


def test_regularization_losses_have_averages(tmp_path):
    """TensorFlow 2 keeps them as lazy tensors."""
    _, stdout, stderr = _run(
        tmp_path,
        "w = tf.get_variable('w', [], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)\n"
        'losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)\n'
        'averages = tf.train.ExponentialMovingAverage(0.9)\n'
        'update = averages.apply(losses)\n'
        'with tf.Session() as sess:\n'
        '    sess.run(tf.global_variables_initializer())\n'
        '    sess.run(update)\n'
        "    print('%.2f' % sess.run(averages.average(losses[0])))\n",
    )
    assert stdout == '0.05\n', stderr


def test_layers_and_cells(tmp_path):
    """They need no tf_keras, and have the names of TensorFlow 1.15."""
    _, stdout, stderr = _run(
        tmp_path,
        'images = tf.ones([2, 8, 8, 3])\n'
        'net = tf.layers.conv2d(images, 4, 3, activation=tf.nn.relu)\n'
        'net = tf.layers.batch_normalization(net, training=True)\n'
        'net = tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2)), 5)\n'
        'cell = tf.nn.rnn_cell.MultiRNNCell([tf.contrib.rnn.GRUCell(3), tf.nn.rnn_cell.BasicLSTMCell(3)])\n'
        'outputs, _ = tf.nn.dynamic_rnn(cell, net[:, None], dtype=tf.float32)\n'
        'cropped = tf.image.random_crop(images[0], [5, 6])\n'
        'names = sorted(variable.op.name for variable in tf.global_variables()[2:])\n'
        'updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n'
        'print(outputs.shape, cropped.shape, len(updates), *names, sep="\\n")\n',
    )
    assert stdout.split('\n') == [
        '(2, 1, 3)',
        '(5, 6, 3)',
        '2',
        'batch_normalization/beta',
        'batch_normalization/gamma',
        'batch_normalization/moving_mean',
        'batch_normalization/moving_variance',
        'conv2d/bias',
        'conv2d/kernel',
        'dense/bias',
        'dense/kernel',
        'rnn/multi_rnn_cell/cell_0/gru_cell/candidate/bias',
        'rnn/multi_rnn_cell/cell_0/gru_cell/candidate/kernel',
        'rnn/multi_rnn_cell/cell_0/gru_cell/gates/bias',
        'rnn/multi_rnn_cell/cell_0/gru_cell/gates/kernel',
        'rnn/multi_rnn_cell/cell_1/basic_lstm_cell/bias',
        'rnn/multi_rnn_cell/cell_1/basic_lstm_cell/kernel',
        '',
    ], stderr
