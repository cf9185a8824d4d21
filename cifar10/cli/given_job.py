"""The Job that the flags of training describe, with its data set made ready, and the directory of
its run."""

from absl import flags

from cifar10 import multi_gpu
from cifar10.cli import data_flags, job_flags, recipe_flags
from cifar10.data import dataset, verification
from cifar10.errors import UserError
from cifar10.hparams import VARIABLE_STRATEGIES, Intervals
from cifar10.parallelism import layers
from cifar10.runs import machine, run_directory
from cifar10.runs.machine import Threads
from cifar10.training import Job

FLAGS = flags.FLAGS

# examples: a batch may repeat those of a small data set, so that the batches of the books can train
# it
_SMALL_BATCH = 1024


def threads():
    """The Threads that the flags give."""
    return Threads(
        intra_op=FLAGS.intra_op_threads,
        inter_op=FLAGS.inter_op_threads,
        prefetch=FLAGS.input_threads,
    )


def prepare(
    num_devices=1, devices_per_tower=1, variable_strategy=VARIABLE_STRATEGIES[0], resumes=True
):
    """Makes the data set ready, and returns the Job that the flags and these numbers describe.

    Args:
      num_devices: of all towers.
      devices_per_tower, variable_strategy: see Job.
      resumes: whether this process resumes a run in --train_dir, as all do but the workers of a
        cluster that are not the chief.

    Raises:
      UserError: flags contradict each other, the data set is missing or malformed, or the batch is
        too large for it.
    """
    hparams = recipe_flags.given_hparams(
        run_directory.resumed_hparams(FLAGS.train_dir) if resumes and not FLAGS.fresh else None
    )
    check_division(num_devices, devices_per_tower)
    devices = multi_gpu.tower_devices(num_devices)
    if FLAGS.deterministic and machine.is_gpu(devices[0]):
        raise UserError(
            '--deterministic works on CPUs only: hide the GPUs with CUDA_VISIBLE_DEVICES=-1'
        )
    data_dir = data_flags.prepare()
    eval_steps = (
        FLAGS.checkpoint_steps if FLAGS.keep_best and FLAGS.eval_steps is None else FLAGS.eval_steps
    )
    return Job(
        data_dir=data_dir,
        num_examples=count_examples(data_dir, hparams.batch_size),
        hparams=hparams,
        devices=devices,
        given_threads=threads(),
        max_steps=FLAGS.max_steps,
        intervals=Intervals(
            log_frequency=FLAGS.log_frequency,
            summary_steps=FLAGS.summary_steps,
            checkpoint_steps=FLAGS.checkpoint_steps,
            max_to_keep=FLAGS.max_to_keep,
            eval_steps=eval_steps,
            keep_best=FLAGS.keep_best,
            profile_step=FLAGS.profile_step,
        ),
        seed=FLAGS.seed,
        deterministic=FLAGS.deterministic,
        log_device_placement=FLAGS.log_device_placement,
        devices_per_tower=devices_per_tower,
        variable_strategy=variable_strategy,
        label=FLAGS.label,
    )


def count_examples(data_dir, batch_size):
    """Returns the number of training examples; raises UserError if a file is malformed, or the
    batch too large for them."""
    num_examples = verification.verify(dataset.read(data_dir, FLAGS.label).train)
    most = max(num_examples, _SMALL_BATCH)
    if batch_size > most:
        raise UserError(
            '--batch_size=%d is too large for the %d training examples in %s: give at most %d'
            % (batch_size, num_examples, data_dir, most)
        )
    return num_examples


def check_division(num_devices, devices_per_tower):
    """Raises UserError if the devices cannot be divided among towers, or the layers over the
    devices of a tower."""
    if devices_per_tower == 1:
        return
    names = [product.layer for product in layers.step_products(1)]
    if devices_per_tower > len(names):
        raise UserError(
            '--devices_per_tower=%d is more than the %d layers of the network (%s): give at most %d'
            % (devices_per_tower, len(names), ', '.join(names), len(names))
        )
    num_towers = min(
        -(-num_devices // devices_per_tower), job_flags.MAX_DEVICES // devices_per_tower
    )
    if num_devices % devices_per_tower:
        raise UserError(
            '--num_gpus=%d devices cannot be divided into towers of %d: give --num_gpus=%d, or another multiple of '
            '--devices_per_tower' % (num_devices, devices_per_tower, num_towers * devices_per_tower)
        )


def held_run(job, is_first=True):
    """Holds --train_dir for the Job: a context manager that yields a RunDirectory, see
    run_directory.held.

    Args:
      job: a Job.
      is_first: whether --fresh moves aside what is there: not what this process has made itself.
    """
    return run_directory.held(FLAGS.train_dir, FLAGS.fresh and is_first, job)
