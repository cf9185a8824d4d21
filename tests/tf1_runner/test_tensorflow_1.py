"""TensorFlow 1 for programs: modules, names, messages, and the truth of a gradient."""

import pytest
import tensorflow

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


def test_layers_cells_and_slots(tmp_path):
    """They need no tf_keras, and have the names of TensorFlow 1.15, also in a reused scope."""
    _, stdout, stderr = _run(
        tmp_path,
        'images = tf.ones([2, 8, 8, 3])\n'
        'net = tf.layers.conv2d(images, 4, 3, activation=tf.nn.relu)\n'
        'net = tf.layers.batch_normalization(net, training=True)\n'
        'net = tf.layers.dense(tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2)), 5)\n'
        'cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(3), tf.nn.rnn_cell.BasicLSTMCell(3)])\n'
        'outputs, _ = tf.nn.dynamic_rnn(cell, net[:, None], dtype=tf.float32)\n'
        'cropped = tf.image.random_crop(images[0], [5, 6])\n'
        'with tf.variable_scope("model", reuse=tf.AUTO_REUSE):\n'
        '    step = tf.train.AdamOptimizer().minimize(x * x, name="step")\n'
        'names = sorted(variable.op.name for variable in tf.global_variables()[2:])\n'
        'updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)\n'
        'print(outputs.shape, cropped.shape, len(updates), step.name, *names, sep="\\n")\n',
    )
    assert stdout.startswith('(2, 1, 3)\n(5, 6, 3)\n2\nmodel/step\n'), stderr
    assert {
        'batch_normalization/moving_variance',
        'conv2d/kernel',
        'dense/bias',
        'model/Variable/Adam_1',
        'model/beta1_power',
        'rnn/multi_rnn_cell/cell_0/gru_cell/candidate/bias',
        'rnn/multi_rnn_cell/cell_1/basic_lstm_cell/kernel',
    } <= set(stdout.split())


def test_modules_are_of_version_1(tmp_path):
    """In version 2, the second argument of dropout is another one, and losses have other names."""
    _, stdout, stderr = _run(
        tmp_path,
        'import tensorflow.nn as nn\n'
        'from tensorflow.nn import dropout\n'
        'from tensorflow.train import AdamOptimizer\n'
        'from tensorflow.layers import dense\n'
        'from tensorflow.nn.rnn_cell import GRUCell\n'
        'import tensorflow.compat.v1.layers as layers\n'
        'from tensorflow.compat.v1.nn.rnn_cell import GRUCell as OtherGRUCell\n'
        'from tensorflow.summary import merge_all\n'
        'from tensorflow.python.framework import ops\n'
        'from tensorflow.python.ops import array_ops, control_flow_ops, variable_scope\n'
        'private = [\n'
        '    ops.IndexedSlices is tf.IndexedSlices, control_flow_ops.cond is tf.cond,\n'
        '    array_ops.stack is tf.stack, array_ops.unstack is tf.unstack,\n'
        '    variable_scope.variable is tf.Variable, ops.Tensor is tf.Tensor]\n'
        'tf.python.control_flow_ops = tf\n'
        'star = {}\n'
        'exec("from tensorflow import *", star)\n'
        'print(tf.nn is nn, nn.rnn_cell.GRUCell is GRUCell, tf.summary.merge_all is merge_all,\n'
        '      tf.train.AdamOptimizer is AdamOptimizer, tf.layers.dense is dense, star["nn"] is nn,\n'
        '      layers.dense is dense, OtherGRUCell is GRUCell, *private)\n'
        'with tf.Session() as sess:\n'
        '    values = sess.run(dropout(tf.ones([1000]), 0.9))\n'
        '    print((values > 0).mean() > 0.8, sess.run([tf.constant(2.0)]))\n',
    )
    assert stdout == ' '.join(14 * ['True']) + '\nTrue [2.0]\n', stderr


def test_the_runner_leaves_no_trace(tmp_path):
    """A program has one thread, its own log file, and the first look at the GPUs."""
    _, stdout, stderr = _run(
        tmp_path,
        'import logging, threading, warnings\n'
        f'logging.basicConfig(filename={str(tmp_path / "log")!r}, level=logging.INFO)\n'
        'tf.logging.info("to the file")\n'
        'print(threading.active_count())\n'
        'tf.config.experimental.list_physical_devices = lambda kind: print("GPUs?") or []\n'
        'print("graph")\n'
        'with tf.device("/gpu:0"):\n'
        '    tf.constant(1)\n'
        'warnings.warn("my function is deprecated")\n',
    )
    assert stdout == '1\ngraph\nGPUs?\n', stderr
    assert (tmp_path / 'log').read_text() == 'INFO:tensorflow:to the file\n'
    assert 'to the file' not in stderr
    assert 'my function is deprecated' in stderr


def test_a_program_sees_version_1_15_and_packages_the_installed_one(tmp_path):
    package = tmp_path / 'site-packages' / 'package.py'
    package.parent.mkdir()
    reads = (
        'import tensorflow as tf, tensorflow.compat.v1 as tf1\n'
        'from tensorflow import VERSION, __version__\n'
        'from tensorflow.version import VERSION as of_module\n'
        'versions = {VERSION, __version__, of_module, tf.__version__, tf.VERSION,\n'
        '            tf.version.VERSION, tf1.__version__, tf1.VERSION, tf1.version.VERSION,\n'
        '            tf.compat.v1.__version__}\n'
    )
    package.write_text(reads)
    _, stdout, stderr = _run(
        tmp_path,
        reads + f'import sys\nsys.path.append({str(package.parent)!r})\n'
        'import package\n'
        'from cifar10.cli import program\n'
        'assert int(tf.__version__.split(".")[0]) == 1\n'
        'star = {}\n'
        'exec("from tensorflow import *", star)\n'
        'star_1 = {}\n'
        'exec("from tensorflow.compat.v1 import *", star_1)\n'
        'assert star["VERSION"] == star_1["VERSION"] == "1.15.5" and "__getattr__" not in star_1\n'
        'print(*versions, sep="\\n")\n'
        'print(*package.versions, tf.compat.v2.__version__, tf.compat.v2.version.VERSION)\n'
        'print(program.versions())\n',
    )
    program, others, line = stdout.splitlines() or [stderr]
    installed = tensorflow.__version__
    assert (program, others.split()) == ('1.15.5', [installed] * 3), stderr
    assert f', TensorFlow {installed}; ' in line
