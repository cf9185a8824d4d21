"""TensorFlow 1 for programs: modules, names, messages, and the truth of a gradient."""

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as tf

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
    'text, hint',
    [
        ('grad = x > 1\nif grad:\n  pass', 'a tensor has no truth value since TensorFlow 0.7'),
        ('if x > 1:\n  pass', 'a tensor has no value while the graph is built'),
        ('grad = x * x\nwhile grad:\n  pass', 'a tensor has no value while the graph is built'),
    ],
)
def test_any_other_truth_is_an_error(tmp_path, text, hint):
    status, stdout, stderr = _run(tmp_path, text)
    assert (status, stdout) == (1, '')
    assert hint in stderr


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
        'cell = tf.nn.rnn_cell.MultiRNNCell([tf.contrib.rnn.GRUCell(3), tf.nn.rnn_cell.BasicLSTMCell(3)])\n'
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


def test_checkpoints_by_contrib_framework(tmp_path):
    _, stdout, stderr = _run(
        tmp_path,
        'from tensorflow.contrib.framework import init_from_checkpoint, list_variables, nest\n'
        'from tensorflow.contrib import framework\n'
        f'directory = {str(tmp_path)!r}\n'
        'with tf.Session() as sess:\n'
        '    sess.run(tf.global_variables_initializer())\n'
        '    tf.train.Saver({"x": x}).save(sess, directory + "/model.ckpt")\n'
        '    init_from_checkpoint(checkpoint_dir=directory, assignment_map={"x": y})\n'
        '    sess.run(tf.global_variables_initializer())\n'
        '    print(sess.run(y), list_variables(directory), nest.flatten([1, (2, [3])]))\n'
        'print(framework.load_variable(directory, "x"),\n'
        '      framework.load_checkpoint(directory).get_tensor("x"))\n',
    )
    assert stdout == "2.0 [('x', [])] [1, 2, 3]\n2.0 2.0\n", stderr


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
        'tf.python.control_flow_ops = tf\n'
        'star = {}\n'
        'exec("from tensorflow import *", star)\n'
        'print(tf.nn is nn, nn.rnn_cell.GRUCell is GRUCell, tf.summary.merge_all is merge_all,\n'
        '      tf.train.AdamOptimizer is AdamOptimizer, tf.layers.dense is dense, star["nn"] is nn,\n'
        '      layers.dense is dense, OtherGRUCell is GRUCell)\n'
        'with tf.Session() as sess:\n'
        '    values = sess.run(dropout(tf.ones([1000]), 0.9))\n'
        '    print((values > 0).mean() > 0.8, sess.run([tf.constant(2.0)]))\n',
    )
    assert stdout == ' '.join(8 * ['True']) + '\nTrue [2.0]\n', stderr


def test_private_names(tmp_path):
    _, stdout, stderr = _run(
        tmp_path,
        'from tensorflow.python.framework import ops\n'
        'from tensorflow.python.ops import array_ops, control_flow_ops, variable_scope, variables\n'
        'print(ops.IndexedSlices is tf.IndexedSlices, control_flow_ops.Assert is tf.Assert,\n'
        '      array_ops.stack is tf.stack, array_ops.unstack is tf.unstack,\n'
        '      variable_scope.variable is tf.Variable, variables.VariableV1 is tf.Variable,\n'
        '      variable_scope.resource_variables_enabled())\n',
    )
    assert stdout == 'True ' * 6 + 'False\n', stderr


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


def test_a_name_that_only_a_later_version_has(tmp_path):
    """The remedy, carried out, works."""
    _, _, stderr = _run(tmp_path, 'tf.random.set_seed(1)')
    line, name = stderr.rstrip().split('; TensorFlow 2 has it: ')
    assert line.startswith(f'cifar10_run.py: error: {tmp_path / "program.py"}:4: AttributeError: ')
    status, _, stderr = _run(tmp_path, name + '(1)')
    assert status == 0, stderr


@pytest.mark.skipif(tensorflow.__version__ < '2', reason='1.15 has no tf.nn.seq2seq')
def test_recurrent_networks_and_losses_before_1_0(tmp_path):
    """The losses are equal in the old and the new order of labels and inputs."""
    _, stdout, stderr = _run(
        tmp_path,
        'from tensorflow.python.ops import rnn, rnn_cell, seq2seq\n'
        'steps = [tf.ones([2, 3])] * 2\n'
        'cell = rnn_cell.OutputProjectionWrapper(tf.nn.rnn_cell.GRUCell(4), 5)\n'
        'outputs, _ = rnn.rnn(cell, steps, dtype=tf.float32)\n'
        'with tf.variable_scope("other"):\n'
        '    both, _, _ = tf.nn.bidirectional_rnn(\n'
        '        rnn_cell.GRUCell(4), rnn_cell.GRUCell(4), steps, dtype=tf.float32)\n'
        'print(outputs[1].shape, both[1].shape, seq2seq is tf.nn.seq2seq)\n'
        'logits, classes, ones = tf.ones([2, 3]), tf.constant([1, 2]), tf.ones([2])\n'
        'loss = tf.nn.seq2seq.sequence_loss_by_example([logits], [classes], [ones])\n'
        'weights, biases = tf.random_normal([7, 3]), tf.zeros([7])\n'
        'inputs, labels = tf.random_normal([4, 3]), tf.constant([[1], [2], [3], [4]])\n'
        'sampled = tf.constant([5, 6], tf.int64), tf.fill([4, 1], 0.5), tf.fill([2], 0.5)\n'
        'with tf.Session() as sess:\n'
        '    print(sess.run(loss).round(3))\n'
        '    for function in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss):\n'
        '        old, new = [function(weights, biases, *pair, 2, 7, sampled_values=sampled)\n'
        '                    for pair in [(inputs, labels), (labels, inputs)]]\n'
        '        old, new = sess.run([old, new])\n'
        '        print(old.shape, (old == new).all())\n',
    )
    assert stdout == '(2, 5) (2, 8) True\n[1.099 1.099]\n(4,) True\n(4,) True\n', stderr


def test_what_numpy_has_removed(tmp_path):
    """The values are those of NumPy 1.15."""
    _, stdout, stderr = _run(
        tmp_path,
        'import numpy as np\n'
        'values = np.fromstring(b"\\1\\0\\2\\0", np.int16)\n'
        'values[0] = 5\n'
        'print(values, np.fromstring("1 2", int, sep=" "), np.fromstring("ab", np.uint8, 1))\n'
        'print(np.reshape([1, 2, 3, 4], newshape=(2, 2), order="F").tolist())\n'
        'print(np.in1d([[1, 2]], [2]), np.mat("1 2").shape, np.trapz([1, 2, 3]), np.rank([1]))\n'
        'np.set_printoptions(threshold=np.nan, precision=2)\n'
        'print(len(str(np.arange(2000.0) / 3)) > 8000, np.array([1 / 3]))\n'
        'np.ones(2).tostring()\n',
    )
    assert stdout == (
        '[5 2] [1 2] [97]\n[[1, 3], [2, 4]]\n[False  True] (1, 2) 4.0 1\nTrue [0.33]\n'
    ), stderr
    if not hasattr(np.ndarray, 'tostring'):
        assert "no attribute 'tostring'; NumPy has removed this method" in stderr


def test_eager_execution(tmp_path):
    (tmp_path / 'program.py').write_text(
        'import tensorflow as tf\n'
        'tf.enable_eager_execution()\ntfe = tf.contrib.eager\n'
        'x = tfe.Variable(3.0)\n'
        'with tf.GradientTape() as tape:\n'
        '    y = x * x\n'
        'print(tape.gradient(y, x).numpy(), tfe.gradients_function(lambda z: z ** 3)(2.0)[0].numpy())\n'
        'batches = tf.data.Dataset.range(4).batch(2)\n'
        'print(*[batch.numpy() for batch in tfe.Iterator(batches)], tfe.Iterator(batches).next().numpy())\n'
        'gradients = tfe.implicit_gradients(lambda: x * x)()\n'
        'tf.train.GradientDescentOptimizer(0.5).apply_gradients(gradients)\n'
        'double = tfe.defun(lambda z: z * 2)\n'
        'print(x.numpy(), double(x).numpy(), tf.layers.Dense(2)(tf.ones([1, 3])).shape)\n'
        f'writer = tf.contrib.summary.create_file_writer({str(tmp_path / "logs")!r})\n'
        'with writer.as_default(), tf.contrib.summary.always_record_summaries():\n'
        '    tf.contrib.summary.scalar("loss", 2.0, step=7)\n'
        'writer.flush()\n'
    )
    _, stdout, stderr = programs.run('cifar10_run', str(tmp_path / 'program.py'))
    assert stdout == '6.0 12.0\n[0 1] [2 3] [0 1]\n0.0 0.0 (1, 2)\n', stderr
    (path,) = (tmp_path / 'logs').iterdir()
    events = list(tf.train.summary_iterator(str(path)))
    assert [(event.step, event.summary.value[0].tag) for event in events[1:]] == [(7, 'loss')]
