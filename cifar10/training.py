"""Job of a run, tensors of a training step, start of the session."""

import os
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from cifar10 import __version__, cpu_kernels, networks
from cifar10.config import CLASSIC, RunLength, RunSettings
from cifar10.data import verification
from cifar10.data.dataset import Dataset
from cifar10.input import InputSettings, Shard
from cifar10.network import Network
from cifar10.report import event_files
from cifar10.runs.run_record import RunRecord
from cifar10.system import machine
from cifar10.system.machine import Threads

_SEEDS_PER_WORKER = 2**22  # TensorFlow has 2^31 - 1 different seeds.


class Job(NamedTuple):
    """Training that a user asks for, and the resources of this machine for it."""

    dataset: Dataset  # verified
    network: Network
    settings: RunSettings
    resources: machine.Resources
    # In a cluster, each worker has a shard of the examples. A step uses the batches of several
    # workers, or several batches of one worker.
    shard: Shard = Shard()
    batches_per_tower: int = 1  # batches per step for each tower of this process

    @property
    def hparams(self):
        """The HParams."""
        return self.network.hparams

    @property
    def num_examples(self):
        """The number of training examples."""
        return self.dataset.train.num_examples

    @property
    def input_settings(self):
        """The InputSettings."""
        return InputSettings(self.hparams, self.settings.deterministic, self.shard)

    @property
    def num_towers(self):
        """The number of towers."""
        return len(self.resources.devices)

    @property
    def run_length(self):
        """The RunLength: max_steps or hparams.epochs, whichever ends first."""
        batches = self.num_towers * self.batches_per_tower
        endless = RunLength(
            self.hparams.batch_size * batches, self.num_examples, batches_per_step=batches
        )
        return endless._replace(
            last_step=min(self.settings.max_steps, endless.num_steps(self.hparams))
        )

    @property
    def session_config(self):
        """The tf.ConfigProto of the session."""
        return machine.session_config(
            self.resources.devices, self.resources.threads, self.settings.log_device_placement
        )


class Step(NamedTuple):
    """Operations of a training step."""

    queue: tf.QueueBase  # the prefetch queue
    train_op: tf.Operation
    summary_op: tf.Tensor  # a string scalar, fetched together with the train op


def create_job(
    dataset,
    hparams=CLASSIC,
    devices=('/cpu:0',),
    settings=RunSettings(),
    variable_strategy='cpu',
    network_name=networks.DEFAULT,
    **cluster_fields,
):
    """Verify a data set; return a Job.

    Args:
      dataset: a Dataset.
      hparams: an HParams.
      devices: one device name per tower.
      settings: a RunSettings; threads that it does not set depend on the cores.
      variable_strategy: one of config.VARIABLE_STRATEGIES.
      network_name: see networks.load.
      cluster_fields: fields of the Job that depend on the cluster.

    Raises:
      UserError: a file of the data set is missing or invalid, or there is no such network.
    """
    dataset = verification.verify(dataset)
    threads = Threads(settings.intra_op_threads, settings.inter_op_threads)
    if settings.deterministic:  # The order of sums varies if threads share an operation.
        threads = threads._replace(intra_op=1, prefetch=1)
    wanted = machine.num_sub_batches(devices, hparams.batch_size, threads.inter_op)
    if network_name not in networks.names():
        network_name = os.path.abspath(network_name)
    chosen = Network(network_name, dataset.num_classes, hparams, wanted)
    graph = chosen.graph(hparams.batch_size, devices[0], is_training=True)
    chosen = chosen._replace(num_sub_batches=cpu_kernels.num_sub_batches(graph))
    resources = machine.resources(devices, chosen.num_sub_batches, variable_strategy, threads)
    return Job(dataset, chosen, settings, resources, **cluster_fields)


def record(job, dataset_name=None, mode=None):
    """Return the RunRecord of a new run.

    Args:
      job: a Job.
      dataset_name: 'cifar10', 'cifar100' or 'synthetic'; None if unknown.
      mode: the mode of a cluster, or None.
    """
    return RunRecord(
        hparams=job.hparams,
        batches_per_step=job.run_length.batches_per_step,
        num_examples=job.num_examples,
        class_names=job.dataset.class_names,
        data_checksum=job.dataset.train.checksum,
        dataset=dataset_name,
        last_step=job.run_length.last_step,
        seed=job.settings.seed,
        deterministic=job.settings.deterministic,
        num_workers=job.shard.num_shards,
        mode=mode,
        version=__version__,
        tensorflow=tf.__version__,
        processor=machine.cpu_name(),
        onednn=machine.onednn_setting(),
        num_sub_batches=job.network.num_sub_batches,
        network=job.network.name,
        network_checksum=job.network.checksum,
    )


def set_seed(settings, first_step, worker_index=0):
    """Seed the default graph, if the RunSettings have a seed.

    Each worker of a cluster gets its own seed. So does each resumed run, unless it is
    deterministic: that one replays the input from the first step, see hooks.ReplayHook.
    """
    if settings.seed is not None:
        shift = 0 if settings.deterministic else first_step
        tf.set_random_seed(settings.seed + shift + _SEEDS_PER_WORKER * worker_index)


def is_complete(job, directory, saved_step):
    """Return True, after a line, if the run in a directory has saved the last step of its Job."""
    if saved_step < job.run_length.last_step:
        return False
    print(
        f'Nothing to do: the run in {directory} has made {saved_step} of {job.run_length.last_step} steps; '
        'increase --max_steps or --epochs to extend it'
    )
    return True


def add_step_tensors(train_op, losses, gradients):
    """Add the tensors of a training step that hooks fetch by their names.

    A hook fetches them in the session.run of the train op:
      step/global_step:0: int64 scalar, the number of updates including this one.
      step/loss:0: float32 scalar, the mean of the towers' losses.
      step/gradient_norm/global_norm:0: float32 scalar, the global norm of the averaged gradients.

    The first one also updates the moving average of the loss, a variable in LOCAL_VARIABLES: it is
    in no checkpoint. Its summary is in the collection SUMMARIES.

    Args:
      train_op: the operation that applies one update and increments the global step.
      losses: a list of the towers' losses, float32 scalars.
      gradients: the list of (gradient, variable) of the update.
    """
    with tf.device('/cpu:0'), tf.name_scope('step/'):
        loss = tf.divide(tf.add_n(losses), float(len(losses)), name='loss')

        def get(getter, name, **kwargs):
            return getter(name, **dict(kwargs, collections=[tf.GraphKeys.LOCAL_VARIABLES]))

        with tf.variable_scope(tf.get_variable_scope(), custom_getter=get):
            # The decay is that of the books. With zero_debias, the average starts at the loss.
            averages = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
            update_average = averages.apply([loss])
        with tf.control_dependencies([train_op, update_average]):
            tf.identity(tf.train.get_global_step().read_value(), name='global_step')
            average = tf.identity(averages.average(loss))
        summary = tf.raw_ops.ScalarSummary(tags=event_files.AVERAGE_LOSS, values=average)
        tf.add_to_collection(tf.GraphKeys.SUMMARIES, summary)
        values = [gradient for gradient, _ in gradients]
        # The norm runs after the update, to leave the cores to the update. It is on the device of
        # the gradients, so that only the result is copied from a GPU.
        with tf.device(values[0].device), tf.control_dependencies([train_op]):
            tf.global_norm(values, name='gradient_norm')


def session_creator(job, run, saver):
    """Return the tf.train.SessionCreator that restores the checkpoint of a run, if it has one.

    Args:
      job: a Job.
      run: a Run.
      saver: a tf.train.Saver.

    Raises:
      UserError: the checkpoint does not fit the graph.
    """
    restored_path = run.restored_path(saver)
    if restored_path:
        print(f'Resuming from {restored_path}, step {run.saved_step}')
    return tf.train.ChiefSessionCreator(
        tf.train.Scaffold(saver=saver),
        config=job.session_config,
        checkpoint_filename_with_path=restored_path,
    )
