"""A worker as it takes part in the updates: what its graph is built under, its update, its
session."""

import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, multi_gpu
from cifar10.distributed import allreduce, asynchronous, averaging, placement, server, synchronous
from cifar10.distributed.join_hook import JoinHook
from cifar10.distributed.member import Member
from cifar10.parallelism import layout
from cifar10.training import SessionSettings

_UPDATES = {
    'sync': synchronous.update,
    'allreduce': allreduce.update,
    'async': asynchronous.update,
    'average': averaging.update,
}


class Replica(Member):
    """A Member that trains."""

    @property
    def share(self):
        """The cifar10_input.Share of the data that the worker reads."""
        return cifar10_input.Share(self.task.index, self.strategy.num_workers)

    @property
    def device(self):
        """What the graph of the worker is built under: a device, or a device function that puts
        variables on parameter servers."""
        return self.task.device if self._is_local else placement.on_servers(self.cluster, self.task)

    @property
    def _is_local(self):
        """Whether the worker trains variables of its own."""
        return self.strategy.mode in ('allreduce', 'average')

    def variables(self):
        """What the worker's towers are built under, when there is a global step: they read its
        variables, or copies of remote ones."""
        devices = self.job.variable_devices
        self._copies = None if self._is_local else placement.Copies(self.task, devices)
        return self._copies.read() if self._copies else multi_gpu.variables_on(devices)

    def update(self, gradients, learning_rate, apply):
        """The worker's part in an update.

        Args:
          gradients: a list of (gradient, variable), averaged over the worker's towers.
          learning_rate: a scalar.
          apply: a function that takes a list of (gradient, variable) and makes the train op.

        Returns:
          An Update.
        """
        return _UPDATES[self.strategy.mode](self, self._copies, gradients, learning_rate, apply)

    def session(self, update):
        """The SessionSettings of a worker with this Update."""
        if self.publishes and not self._is_local:
            print(
                'Variables: %s'
                % ', '.join(
                    '%.1f MB on %s' % (size / 1e6, name)
                    for name, size in placement.bytes_held(tf.global_variables())
                ),
                flush=True,
            )
        self._tell_layout(update)
        config = server.session_config(
            (self.hosts if self.strategy.has_servers else []) + [self.task], self.job.session.config
        )
        return SessionSettings(
            config,
            self.station.target,
            self.first_step,
            self.publishes or self._is_local,
            [JoinHook(self, update)] + list(update.hooks),
        )

    def _tell_layout(self, update):
        """Prints what the devices of this worker hold, and what they send to each other, if not all
        is as usual."""
        if self.job.devices_per_tower == 1 and self.job.variable_strategy == 'cpu':
            return
        name, variables = (
            ('Copies of the weights', self._copies.variables)
            if self._copies
            else ('Weights', tf.trainable_variables())
        )
        when = 'per step' if self.strategy.needs_all else 'in a step with an exchange'
        operations = [op for op in (update.train_op, update.fetch_op) if op is not None]
        found = layout.of_graph(operations, variables, self.task.device)
        print('\n'.join(found.describe(name, self.job.variable_strategy, when)), flush=True)
