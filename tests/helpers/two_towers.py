"""One process with several towers on given batches: the reference for a cluster."""

import os

import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib, multi_gpu, optimizer, training
from tests.helpers import queues


def batches(job, first_step, shard, count):
    """Return the batches (images, labels) of a worker that starts at this step."""
    used = first_step * job.replayed_batches
    with tf.Graph().as_default(), tf.device('/cpu:0'):
        training.set_seed(job.settings, first_step, shard.index)
        return queues.run(
            input_lib.distorted_inputs(
                job.dataset, job.hparams.batch_size, job.input_settings._replace(shard=shard)
            ),
            used + count,
        )[used:]


class Trainer:
    """Graph of towers with readable and writable variables."""

    def __init__(self, hparams, run_length, num_towers):
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(3)
            self._session = tf.Session(config=tf.ConfigProto(device_count={'CPU': num_towers}))
            image = (hparams.batch_size, 24, 24, 3)
            self._batches = [
                (tf.placeholder(tf.float32, image), tf.placeholder(tf.int32, image[:1]))
                for _ in range(num_towers)
            ]
            global_step = tf.train.get_or_create_global_step()
            rate = optimizer.learning_rate(global_step, run_length, hparams)
            opt = optimizer.create(rate, hparams)
            devices = [f'/cpu:{i}' for i in range(num_towers)]
            _, tower_grads = multi_gpu.tower_gradients(devices, self._batches, opt, hparams=hparams)
            # The update takes its gradients from placeholders, so that a test can replace them. It
            # must not wait for the losses.
            graph.clear_collection('losses')
            self._gradients = {
                variable.op.name: gradient
                for gradient, variable in multi_gpu.average_gradients(tower_grads)
            }
            self._gradient_placeholders = {
                variable.op.name: tf.placeholder(tf.float32, variable.shape)
                for variable in tf.trainable_variables()
            }
            self._train_op = optimizer.train_op(
                opt,
                [
                    (self._gradient_placeholders[variable.op.name], variable)
                    for variable in tf.trainable_variables()
                ],
                global_step,
                run_length,
                hparams,
            )
            self._variables = {variable.op.name: variable for variable in tf.global_variables()}
            self._session.run(tf.global_variables_initializer())
            self._saver = tf.train.Saver()
        self._graph = graph

    def load(self, values):
        """Assign values to variables, by name."""
        with self._graph.as_default():
            for name, value in values.items():
                self._variables[name].load(value, self._session)

    def values(self):
        """Return the values of all variables, by name."""
        return self._session.run(self._variables)

    def gradients(self, batches):
        """Return the mean gradients of one batch per tower, by variable name."""
        return self._session.run(
            self._gradients,
            {
                tensor: value
                for pair, values in zip(self._batches, batches)
                for tensor, value in zip(pair, values)
            },
        )

    def apply(self, gradients):
        """Update the variables with gradients, by variable name."""
        self._session.run(
            self._train_op,
            {self._gradient_placeholders[name]: gradient for name, gradient in gradients.items()},
        )

    def step(self, batches):
        """Update the variables with one batch per tower."""
        self.apply(self.gradients(batches))

    def save(self, directory):
        """Save a checkpoint of the variables in a directory."""
        self._saver.save(
            self._session, os.path.join(str(directory), 'model.ckpt'), self.values()['global_step']
        )
