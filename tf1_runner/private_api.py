"""Private names of TensorFlow that the runner uses or gives to programs."""

import tensorflow.compat.v1 as tf

from cifar10.errors import UserError


def load(path):
    """Return a module, or a name in a module, by its path below tensorflow.python.

    Raises:
      UserError: this version of TensorFlow does not have it.
    """
    module, _, name = f'tensorflow.python.{path}'.rpartition('.')
    try:
        # What `from module import name` imports: version 1.15 has two modules pywrap_tensorflow.
        return getattr(__import__(module, fromlist=[name]), name)
    except (ImportError, AttributeError):
        raise UserError(
            f'TensorFlow {tf.__version__} lacks {module}.{name}: '
            'install the newest tested version, '
            "pip install 'tensorflow==2.21.*' (with Python 3.10 to 3.13)"
        )


InputSpec = load('layers.base.InputSpec')
array_ops = load('ops.array_ops')
assign_moving_average = load('training.moving_averages.assign_moving_average')
control_flow_ops = load('ops.control_flow_ops')
get_seed = load('framework.random_seed.get_seed')
graph_util = load('framework.graph_util')
layers = load('layers.layers')
nest = load('util.nest')
normalization = load('layers.normalization')
ops = load('framework.ops')
pywrap_tensorflow = load('pywrap_tensorflow')
rnn_cell = load('ops.rnn_cell')
session = load('client.session')
variable_scope = load('ops.variable_scope')
