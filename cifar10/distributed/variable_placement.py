"""Placement of variables: on parameter servers, balanced by bytes, with copies at each worker."""

import collections
import contextlib

import tensorflow.compat.v1 as tf

from cifar10 import placement
from cifar10.placement import GreedyLoadBalancer


def ps_device_setter(cluster, worker):
    """Return a device function that balances variables over the parameter servers by bytes.

    Everything else goes to the CPU of the worker. An optimizer's slots and the moving averages are
    put beside their variables.
    """
    balancer = GreedyLoadBalancer(range(len(cluster.ps_hosts)))
    return tf.train.replica_device_setter(
        worker_device=worker.device,
        cluster=cluster.spec,
        ps_strategy=lambda op: balancer.assign_device(
            op.name, op.get_attr('shape'), op.get_attr('dtype')
        ),
    )


def print_variable_sizes(variables):
    """Print the size of the variables on each task that has any."""
    sizes = collections.Counter()
    for variable in variables:
        spec = tf.DeviceSpec.from_string(variable.device)
        size = variable.shape.num_elements() * variable.dtype.size
        sizes[f'{spec.job} {spec.task}'] += size
    texts = [f'{size / 1e6:.1f} MB on {name}' for name, size in sorted(sizes.items())]
    print('Variables: ' + ', '.join(texts))


def print_layout(replica, worker_update, copies):
    """Print the variables on each device of a Worker with this Update, and the transfers.

    Without Copies, its variables are its own.
    """
    name, variables = 'Weights', tf.trainable_variables()
    if copies:
        name, variables = 'Copies of the weights', copies.variables
    unit = 'per step' if replica.strategy.is_synchronous else 'in a step with an exchange'
    operations = [worker_update.train_op, *worker_update.fetch_ops]
    stats = placement.placement_stats(operations, variables, replica.task.device)
    print('\n'.join(stats.format_lines(name, replica.job.variable_strategy, unit)))


def shared_variable(device, name, initial):
    """Return a variable of the default graph that is in no checkpoint.

    All processes that use the same device and name share it.

    Args:
      device: of the task that holds it.
      name: a text.
      initial: a tensor, the initial value. If it has no static shape, the variable has none.
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
    """Copies of the variables at a worker.

    The model reads the copies, while updates are made to the originals.
    """

    def __init__(self, worker, devices=('/cpu:0',)):
        """Make copies for the Task of a worker, balanced over its devices.

        The default graph must have a global step.
        """
        self._worker = worker
        self._balancer = GreedyLoadBalancer(devices)
        self._originals, self._copies = {}, {}  # by name
        # of the originals when the copies were fetched
        self.step = self.local_variable('copies/step', tf.constant(0, tf.int64), '/cpu:0')

    def local_variable(self, name, initial, device, trainable=False):
        """Return a variable on a device of the worker, not shared with other workers."""
        with tf.device(self._worker.device), tf.device(device):
            return tf.Variable(
                initial,
                trainable=trainable,
                name=name,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
            )

    @property
    def variables(self):
        """The copies."""
        return list(self._copies.values())

    @contextlib.contextmanager
    def read(self):
        """Make tf.get_variable create a variable and its copy, and return the copy, in this block.

        The copy is the trainable one there.
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

        `step` becomes a step that is not newer than these values.
        """
        with tf.device(self._worker.device), tf.name_scope('fetch'), tf.control_dependencies(
            [self.step.assign(tf.train.get_global_step().read_value())]
        ):
            return tf.group(
                *(
                    copy.assign(self._originals[name].read_value())
                    for name, copy in self._copies.items()
                )
            )

    def descend(self, gradients, learning_rate):
        """Return an operation of gradient descent on the copies, for a list of (gradient, copy)."""
        updates = []
        for gradient, copy in gradients:
            with tf.device(copy.device):
                updates.append(copy.assign_sub(learning_rate * gradient))
        return tf.group(*updates)
