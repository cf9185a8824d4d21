"""Names of tf.contrib that tf_slim has; TensorFlow 1.15 has the originals."""

from importlib.util import find_spec
import json

import numpy as np
import pytest
import tensorflow

from tests.helpers import programs
from tf1_runner import contrib_slim

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not hasattr(tensorflow, 'contrib') and not find_spec('tf_slim'),
        reason='needs tf_slim, or TensorFlow 1.15',
    ),
]
START = 'import numpy as np\nimport tensorflow as tf\nfrom tensorflow.contrib import slim\n'


def _run(tmp_path, text):
    (tmp_path / 'program.py').write_text(START + text)
    status, stdout, stderr = programs.run('cifar10_run', str(tmp_path / 'program.py'))
    assert status == 0, stderr
    return stdout


def test_every_place_of_a_name(tmp_path):
    stdout = _run(
        tmp_path,
        'from tensorflow.contrib.framework import add_arg_scope\n'
        'from tensorflow.contrib.framework.python.ops import arg_scope, variables\n'
        'from tensorflow.contrib.framework.python.ops.variables import model_variable\n'
        'from tensorflow.contrib.layers.python.layers import conv2d, initializers, layers, utils\n'
        'from tensorflow.contrib.layers.python.layers.layers import _build_variable_getter\n'
        'from tensorflow.contrib.slim import nets\n'
        'from tensorflow.contrib.slim.nets import vgg\n'
        'print(\n'
        '    slim.arg_scope is arg_scope is tf.contrib.framework.arg_scope,\n'
        '    variables.model_variable is model_variable is slim.model_variable,\n'
        '    slim.conv2d is conv2d is layers.conv2d is slim.layers.conv2d,\n'
        '    tf.contrib.layers.conv2d is conv2d,\n'
        '    slim.l2_regularizer is slim.regularizers.l2_regularizer,\n'
        '    nets.vgg is vgg,\n'
        '    callable(slim.prefetch_queue.prefetch_queue),\n'
        ')\n',
    )
    assert stdout.split() == ['True'] * 7


@pytest.mark.skipif(not find_spec('tf_slim'), reason='needs tf_slim')
def test_the_tables_are_those_of_the_installed_version(tmp_path):
    stdout = _run(
        tmp_path,
        'import importlib, json, types\n'
        'def names(module):\n'
        '    return sorted(\n'
        '        name\n'
        '        for name, value in vars(importlib.import_module("tf_slim." + module)).items()\n'
        '        if name[0] != "_" and not isinstance(value, types.ModuleType)\n'
        '        and not hasattr(value, "compiler_flag")  # print_function and the like\n'
        '    )\n'
        f'print(json.dumps({{name: names(name) for name in {list(contrib_slim._NAMES)}}}))\n'
        f'for path in {sorted(contrib_slim._MODULES)}:\n'
        '    module = importlib.import_module("tensorflow.contrib." + path)\n'
        '    assert path == "framework.python.ops.arg_scope" or module is eval("tf.contrib." + path)\n',
    )
    expected = {name: sorted(names.split()) for name, names in contrib_slim._NAMES.items()}
    assert json.loads(stdout) == expected


def test_training_with_sparse_gradients(tmp_path):
    """The gradient of two rows of two ones has the norm 2."""
    stdout = _run(
        tmp_path,
        'table = tf.Variable(np.zeros([4, 2], np.float32), name="table")\n'
        'step = tf.train.get_or_create_global_step()\n'
        'loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 3]))\n'
        'train_op = tf.contrib.layers.optimize_loss(loss, step, 0.1, "SGD",\n'
        '    gradient_multipliers={"table:0": 3.0},\n'
        '    summaries=tf.contrib.layers.OPTIMIZER_SUMMARIES)\n'
        'with tf.Session() as sess:\n'
        '    sess.run(tf.global_variables_initializer())\n'
        '    for _ in range(3):\n'
        '        sess.run(train_op)\n'
        '    print(table.eval().tolist())\n',
    )
    row = -3 * 0.1 * 6 / 2
    np.testing.assert_allclose(json.loads(stdout), [[0, 0], [row, row]] * 2, rtol=1e-5)


def test_a_network_is_that_of_version_1_15(tmp_path):
    stdout = _run(
        tmp_path,
        'from tensorflow.contrib.slim.nets import resnet_utils, resnet_v1\n'
        'images = np.sin(np.arange(2 * 8 * 8 * 3, dtype=np.float32)).reshape(2, 8, 8, 3)\n'
        'with slim.arg_scope(resnet_utils.resnet_arg_scope(batch_norm_decay=0.5)):\n'
        '    logits, _ = resnet_v1.resnet_v1(\n'
        '        tf.constant(images), [resnet_v1.resnet_v1_block("block1", 2, 2, 2)], 3,\n'
        '        is_training=True, include_root_block=False)\n'
        'logits = tf.squeeze(logits, [1, 2])\n'
        'tf.losses.softmax_cross_entropy(tf.constant([[1, 0, 0], [0, 0, 1]]), logits)\n'
        'optimizer = tf.train.MomentumOptimizer(0.1, 0.9)\n'
        'loss = tf.losses.get_total_loss()\n'
        'with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n'
        '    total = tf.identity(loss)\n'
        'step = optimizer.minimize(total)\n'
        'weights = slim.get_variables_by_suffix("weights")\n'
        'values = [np.sin(1 + np.arange(v.shape.num_elements())) for v in weights]\n'
        'with tf.Session() as sess:\n'
        '    sess.run(tf.global_variables_initializer())\n'
        '    for variable, value in zip(weights, values):\n'
        '        variable.load(value.reshape(variable.shape.as_list()), sess)\n'
        '    print([round(float(sess.run([total, step])[0]), 4) for _ in range(3)])\n'
        '    name = "resnet_v1/block1/unit_1/bottleneck_v1/conv1/BatchNorm/moving_mean"\n'
        '    print(len(slim.get_model_variables()), slim.get_unique_variable(name).eval().tolist())\n',
    )
    losses, others = stdout.splitlines()
    number, moving_mean = others.split(' ', 1)
    # TensorFlow 1.15 printed these numbers.
    assert (losses, number) == ('[1.1994, 0.9695, 0.8148]', '37')
    np.testing.assert_allclose(json.loads(moving_mean), [-0.003691, -0.002209], rtol=1e-3)
