"""Where the variables of a cluster are: on parameter servers, balanced by bytes, with copies at each worker."""
import contextlib

import tensorflow.compat.v1 as tf

_VARIABLE_OPS = ('Variable', 'VariableV2', 'AutoReloadVariable', 'VarHandleOp')  # as in tf.train.replica_device_setter


class Balance:
    """Gives each new variable to the parameter server that holds the fewest bytes; a strategy of tf.train.replica_device_setter.

    An optimizer's slots and the moving averages are put beside their variables.
    """

    def __init__(self, num_servers):
        self._bytes = [0] * num_servers

    def __call__(self, op):
        """The index of the parameter server for an operation that makes a variable."""
        index = self._bytes.index(min(self._bytes))
        shape = tf.TensorShape(op.get_attr('shape'))
        self._bytes[index] += shape.num_elements() * tf.as_dtype(op.get_attr('dtype')).size
        return index


def on_servers(cluster, worker):
    """A device function: variables go to the parameter servers, everything else to the CPU of the worker."""
    return tf.train.replica_device_setter(
        worker_device=worker.device, cluster=tf.train.ClusterSpec({'ps': list(cluster.ps), 'worker': list(cluster.worker)}),
        ps_strategy=Balance(len(cluster.ps)), ps_ops=list(_VARIABLE_OPS))


def beside_variables(op):
    """A device function: what takes its input from a parameter server is there: no variable is sent to be updated elsewhere."""
    if not op.inputs:  # a constant
        return '/job:ps/task:0/cpu:0'
    for tensor in op.inputs:
        source = tensor.op
        while not source.device and source.inputs:  # reading a variable has no device of its own
            source = source.inputs[0].op
        if tf.DeviceSpec.from_string(source.device).job == 'ps':
            return source.device
    return op.device


def bytes_held(variables):
    """The bytes of the variables on each device that has some: a list of (device name, bytes)."""
    held = {}
    for variable in variables:
        spec = tf.DeviceSpec.from_string(variable.device)
        name = '%s %s' % (spec.job, spec.task)
        held[name] = held.get(name, 0) + variable.shape.num_elements() * variable.dtype.size
    return sorted(held.items())


class Copies:
    """Copies of the variables at a worker: the model reads the copies, while updates are made to the originals."""

    def __init__(self, worker):
        """Makes copies for the Task of a worker, in the default graph, which has a global step."""
        self._worker = worker
        self._originals = {}  # by name
        self._copies = {}
        self.step = self._local('step', tf.constant(0, tf.int64))  # that the originals had when the copies were fetched

    def _local(self, name, initial, trainable=False):
        with tf.device(self._worker.device):
            return tf.Variable(initial, trainable=trainable, name='copies/' + name, collections=[tf.GraphKeys.LOCAL_VARIABLES])

    @contextlib.contextmanager
    def read(self):
        """In the block, tf.get_variable makes a variable and its copy, and returns the copy, which is what is trainable there."""
        with tf.variable_scope(tf.get_variable_scope(), custom_getter=self._get):
            yield
        trainable = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
        trainable[:] = list(self._originals.values())

    def _get(self, getter, name, *args, **kwargs):
        kwargs['trainable'] = False
        original = getter(name, *args, **kwargs)
        if name not in self._copies:
            self._originals[name] = original
            self._copies[name] = self._local(name, tf.zeros(original.shape, original.dtype.base_dtype), trainable=True)
        return self._copies[name]

    def of_originals(self, gradients):
        """The list of (gradient, copy) as one of (gradient, original)."""
        originals = {id(copy): self._originals[name] for name, copy in self._copies.items()}
        return [(gradient, originals[id(copy)]) for gradient, copy in gradients]

    def fetch(self):
        """An operation that gives the copies the values of the originals, and `step` the step of values that are not newer."""
        with tf.device(self._worker.device), tf.name_scope('fetch'), tf.control_dependencies([
                self.step.assign(tf.train.get_global_step().read_value())]):
            return tf.group(*(copy.assign(self._originals[name].read_value()) for name, copy in self._copies.items()))

    def descend(self, gradients, rate):
        """An operation that moves the copies against their gradients, a list of (gradient, copy)."""
        with tf.device(self._worker.device):
            return tf.group(*(copy.assign_sub(rate * gradient) for gradient, copy in gradients))
