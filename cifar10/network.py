"""The chosen network, as trainers, evaluation, prediction and export build it.

Nothing else knows the layers: the collections of the graph have what there is to know.
"""

import dataclasses
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import cpu_kernels, model, networks
from cifar10.config import CLASSIC, DEPTH, IMAGE_SIZE, NUM_CLASSES, HParams
from cifar10.errors import UserError
from cifar10.runs import run_record

# Graph collections: the variables that were created in `inference`, and the weights of the last
# layer, which has one column per class.
VARIABLES, OUTPUT_WEIGHTS = 'network_variables', 'output_weights'


class Network(NamedTuple):
    """A network of the package, or of a file, with its hyperparameters."""

    name: str = networks.DEFAULT  # see networks.load
    num_classes: int = NUM_CLASSES
    hparams: HParams = CLASSIC
    num_sub_batches: int = 1  # parts of a batch that a CPU computes in parallel

    @property
    def checksum(self):
        """The SHA-256 of the source."""
        return networks.load(self.name)[1]

    def inference(self, images, is_training=False):
        """Build the logits, [batch, num_classes]; see model.inference. Collect the variables.

        Raises:
          UserError: the network creates a variable without tf.get_variable.
        """
        module, before = networks.load(self.name)[0], len(tf.global_variables())
        names = set()

        def get(getter, name, **kwargs):
            names.add(name)
            return getter(name, **kwargs)

        with cpu_kernels.sub_batches(self.num_sub_batches), tf.variable_scope(
            tf.get_variable_scope(), custom_getter=get, auxiliary_name_scope=False
        ):
            logits = module.inference(
                images, self.num_classes, self.hparams, is_training=is_training
            )
        created = tf.global_variables()[before:]
        for variable in created:
            if variable.op.name not in names:
                raise UserError(
                    f'The network {self.name} creates {variable.op.name} by tf.Variable: '
                    'use tf.get_variable, so that towers and parts of a batch share it'
                )
        tf.get_collection_ref(VARIABLES).extend(created)
        weights = [v for v in created if len(v.shape) > 1 and v.shape[-1] == self.num_classes]
        tf.get_collection_ref(OUTPUT_WEIGHTS).extend(weights[-1:])
        return logits

    def loss(self, logits, labels, scope=None):
        """Return the total loss; see model.loss, which a network without a `loss` has."""
        loss = getattr(networks.load(self.name)[0], 'loss', model.loss)
        return loss(logits, labels, scope, self.hparams)

    def graph(self, batch_size=1, device='/cpu:0', is_training=False):
        """Return a graph of its own with the network, to look at its collections."""
        with tf.Graph().as_default() as graph, tf.device(device):
            images = tf.zeros([batch_size, IMAGE_SIZE, IMAGE_SIZE, DEPTH])
            self.inference(images, is_training)
        return graph


def variables(graph=None):
    """Return the variables of the network by their names; without one, the trainable variables."""
    graph = graph or tf.get_default_graph()
    found = graph.get_collection(VARIABLES) or graph.get_collection(
        tf.GraphKeys.TRAINABLE_VARIABLES
    )
    return {variable.op.name: variable for variable in found}


def source_notes(directory, network):
    """Return a note for the user, in a list, if a Network is not that of the run's record."""
    if run_record.read(directory).network_checksum in (None, network.checksum):
        return []
    return [f'The run in {directory} was trained with another source of the network {network.name}']


def of_run(directory, choice=None, num_classes=NUM_CLASSES):
    """Return the Network of a run, for the evaluation, prediction and export.

    Its products are those of float32. Without a record, it is the book's network with the
    hyperparameters of classic.

    Args:
      directory: the directory of the run.
      choice: see networks.load; None is the recorded one.
      num_classes: the number of classes.

    Raises:
      UserError: the record is damaged; or it has the path of a file, which could be anyone's code,
        and there is no `choice`.
    """
    record = run_record.read(directory)
    name = choice or record.network
    if not choice and name not in networks.names():
        raise UserError(
            f'The run in {directory} has a network that is not of this package: {name}: '
            'give its file with --network'
        )
    hparams = dataclasses.replace(record.hparams, compute_dtype='float32')
    return Network(name, num_classes, hparams)
