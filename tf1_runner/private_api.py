"""Private names of TensorFlow that the runner uses or gives to programs."""

from cifar10.system.private_api import load

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
