"""Placement of variables on parameter servers, and of their copies on workers."""

import collections
import contextlib

import tensorflow.compat.v1 as tf

from cifar10.placement import GreedyLoadBalancer


def ps_device_setter(cluster, worker_task):
    """Return a device function that balances variables over the parameter servers by bytes.

    An optimizer's variables and the moving averages are on the servers of their variables. Other
    operations run on the worker's CPU.
    """
    balancer = GreedyLoadBalancer(range(len(cluster.ps_hosts)))
    return tf.train.replica_device_setter(
        worker_device=worker_task.device,
        cluster=cluster.spec,
        ps_strategy=lambda op: balancer.assign_device(
            op.name, op.get_attr('shape'), op.get_attr('dtype')
        ),
    )


def print_variable_sizes(variables):
    """Print the size of the variables per task."""
    sizes = collections.Counter()
    for variable in variables:
        spec = tf.DeviceSpec.from_string(variable.device)
        size = variable.shape.num_elements() * variable.dtype.size
        sizes[f'{spec.job} {spec.task}'] += size
    texts = [f'{size / 1e6:.1f} MB on {name}' for name, size in sorted(sizes.items())]
    print('Variables: ' + ', '.join(texts))


def shared_variable(device, name, initial):
    """Return a variable outside checkpoints that processes share by device and name.

    Args:
      device: the device of the variable.
      name: a string.
      initial: the tensor of the initial value. Without a static shape, the variable has none.
    """
    with tf.device(device), tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        return tf.get_variable(
            name,
            dtype=initial.dtype,
            initializer=initial,
            validate_shape=initial.shape.rank is not None,
            trainable=False,
            collections=[],
            use_resource=True,
        )


class Copies:
    """Copies of the variables on a worker: the model reads copies; steps change originals."""

    def __init__(self, worker_task, devices=('/cpu:0',)):
        """Place the copies on the devices of a worker's Task, balanced by bytes.

        The default graph must have a global step.
        """
        self._worker_task = worker_task
        self._balancer = GreedyLoadBalancer(devices)
        self._originals, self._copies = {}, {}  # by name
        # The step of the last fetch
        self.step = self.local_variable('copies/step', tf.constant(0, tf.int64), '/cpu:0')

    def local_variable(self, name, initial, device, trainable=False):
        """Return a local variable on a device of the worker."""
        with tf.device(self._worker_task.device), tf.device(device):
            return tf.Variable(
                initial,
                trainable=trainable,
                name=name,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )

    @contextlib.contextmanager
    def variable_scope(self):
        """Make tf.get_variable in this block create a variable and a copy, and return the copy.

        Only the copies are trainable in the block; only the originals are trainable after it.
        """
        with tf.variable_scope(tf.get_variable_scope(), custom_getter=self._custom_getter):
            yield
        trainable = tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES)
        trainable[:] = self._originals.values()

    def _custom_getter(self, getter, name, *args, **kwargs):
        original = getter(name, *args, **dict(kwargs, trainable=False))
        if name not in self._copies:
            self._originals[name] = original
            dtype = original.dtype.base_dtype
            self._copies[name] = self.local_variable(
                'copies/' + name,
                tf.zeros(original.shape, dtype),
                self._balancer.assign_device(name, original.shape, dtype),
                trainable=True,
            )
        return self._copies[name]

    def map_to_originals(self, gradients):
        """Replace the copies by their originals in a list of (gradient, copy)."""
        originals = {id(copy): self._originals[name] for name, copy in self._copies.items()}
        return [(gradient, originals[id(copy)]) for gradient, copy in gradients]

    def fetch(self):
        """Return an operation that assigns the originals' values to the copies.

        The operation sets `step` first, so that the step is not newer than the values.
        """
        with tf.device(self._worker_task.device), tf.name_scope('fetch'), tf.control_dependencies(
            [self.step.assign(tf.train.get_global_step().read_value())]
        ):
            return tf.group(
                *(
                    copy.assign(self._originals[name].read_value())
                    for name, copy in self._copies.items()
                )
            )

    def descend(self, gradients, learning_rate):
        """Return an operation of gradient descent on the copies in a list of (gradient, copy)."""
        updates = []
        for gradient, copy in gradients:
            with tf.device(copy.device):
                updates.append(copy.assign_sub(learning_rate * gradient))
        return tf.group(*updates)
