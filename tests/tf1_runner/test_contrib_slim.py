"""Names of tf.contrib that tf_slim has; TensorFlow 1.15 has the originals."""

from importlib.util import find_spec
import json

import numpy as np
import pytest
import tensorflow

from tests.helpers import programs

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
