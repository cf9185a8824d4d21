"""The flags of training, and the Job that they describe."""
from absl import flags

from cifar10 import multi_gpu
from cifar10.cli import data_flags, recipe_flags
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC
from cifar10.parallelism import layers
from cifar10.runs import checkpoint_files, machine, run_directory
from cifar10.runs.machine import Threads
from cifar10.training import Intervals, Job

FLAGS = flags.FLAGS

_MAX = 2 ** 31 - 1
_MAX_DEVICES = 64


def define():
    """Defines the flags of the training scripts, except --num_gpus."""
    data_flags.define()
    define_run()
    recipe_flags.define()
    define_threads()
    flags.DEFINE_boolean('fresh', False, 'Move an existing run in --train_dir aside and start a new one.')
    flags.DEFINE_integer('max_to_keep', Intervals().max_to_keep, 'Checkpoints to keep, the latest ones; 0 keeps all.', lower_bound=0,
                         upper_bound=_MAX)
    flags.DEFINE_integer('seed', None, 'Seed of initial values and distortions. The order of the images still depends on the '
                         'timing of threads, unless --deterministic is given.', lower_bound=0, upper_bound=_MAX)
    flags.DEFINE_boolean('deterministic', False, 'Let --seed fix everything: two runs on one machine give the same weights, bit for '
                         'bit. Only without GPUs.')
    flags.DEFINE_boolean('log_device_placement', False, 'Print the device of every operation.')


def define_run():
    """Defines --train_dir, --max_steps and the intervals."""
    data_flags.define_directory('train_dir', '/tmp/cifar10_train',
                                'Directory of checkpoints and summaries; an existing run is resumed.',
                                checkpoint_files.check_directory)
    intervals = Intervals()
    flags.DEFINE_integer('max_steps', Job._field_defaults['max_steps'], 'End the run at this step; the steps of earlier starts count.',
                         lower_bound=1, upper_bound=_MAX)
    for name, description in [('log_frequency', 'log lines'), ('summary_steps', 'summaries'), ('checkpoint_steps', 'checkpoints')]:
        flags.DEFINE_integer(name, getattr(intervals, name), 'Steps between two %s.' % description, lower_bound=1, upper_bound=_MAX)


def define_batch_size():
    """Defines --batch_size, for scripts without --recipe."""
    flags.DEFINE_integer('batch_size', CLASSIC.batch_size, 'Examples per tower per step.', lower_bound=1, upper_bound=2 ** 20)


def define_num_gpus():
    """Defines --num_gpus."""
    flags.DEFINE_integer('num_gpus', 1, 'Number of towers; each has a GPU of its own if there are enough.', lower_bound=1,
                         upper_bound=_MAX_DEVICES)


def define_placement():
    """Defines --devices_per_tower and --variable_strategy."""
    flags.DEFINE_integer('devices_per_tower', Job._field_defaults['devices_per_tower'], 'Devices over which the layers of each tower '
                         'are divided; --num_gpus then is the number of devices, and a multiple of this.', lower_bound=1,
                         upper_bound=_MAX_DEVICES)
    flags.DEFINE_enum('variable_strategy', Job._field_defaults['variable_strategy'], multi_gpu.VARIABLE_STRATEGIES,
                      'Where the variables live: on the CPU, on the first device, or spread over all devices, balanced by bytes.')


def define_threads():
    """Defines --intra_op_threads, --inter_op_threads and --input_threads."""
    for name, description in [('intra_op_threads', 'that share one operation'),
                              ('inter_op_threads', 'for operations that run in parallel'),
                              ('input_threads', 'that fill the prefetch queue')]:
        flags.DEFINE_integer(name, 0, 'Threads %s; 0 chooses by the number of cores.' % description, lower_bound=0,
                             upper_bound=1024)


def given_threads():
    """The Threads that the flags give."""
    return Threads(intra_op=FLAGS.intra_op_threads, inter_op=FLAGS.inter_op_threads, prefetch=FLAGS.input_threads)


def prepare_job(num_devices=1, devices_per_tower=1, variable_strategy=Job._field_defaults['variable_strategy']):
    """Makes the data set ready, and returns the Job that the flags and these numbers describe.

    Args:
      num_devices: of all towers.
      devices_per_tower, variable_strategy: see Job.

    Raises:
      UserError: flags contradict each other, or the data set is missing or malformed.
    """
    hparams = recipe_flags.given_hparams()
    check_division(num_devices, devices_per_tower)
    devices = multi_gpu.tower_devices(num_devices)
    if FLAGS.deterministic:
        _check_deterministic(devices)
    data_dir = data_flags.prepare(FLAGS.dataset)
    return Job(
        data_dir=data_dir, num_examples=dataset.verify(dataset.train_files(data_dir)), hparams=hparams,
        devices=devices, given_threads=given_threads(), max_steps=FLAGS.max_steps,
        intervals=Intervals(log_frequency=FLAGS.log_frequency, summary_steps=FLAGS.summary_steps,
                            checkpoint_steps=FLAGS.checkpoint_steps, max_to_keep=FLAGS.max_to_keep),
        seed=FLAGS.seed, deterministic=FLAGS.deterministic, log_device_placement=FLAGS.log_device_placement,
        devices_per_tower=devices_per_tower, variable_strategy=variable_strategy)


def check_division(num_devices, devices_per_tower):
    """Raises UserError if the devices cannot be divided among towers, or the layers over the devices of a tower."""
    if devices_per_tower == 1:
        return
    names = [product.layer for product in layers.step_products(1)]
    if devices_per_tower > len(names):
        raise UserError('--devices_per_tower=%d is more than the %d layers of the network (%s): give at most %d'
                        % (devices_per_tower, len(names), ', '.join(names), len(names)))
    num_towers = min(-(-num_devices // devices_per_tower), _MAX_DEVICES // devices_per_tower)
    if num_devices % devices_per_tower:
        raise UserError('--num_gpus=%d devices cannot be divided into towers of %d: give --num_gpus=%d, or another multiple of '
                        '--devices_per_tower' % (num_devices, devices_per_tower, num_towers * devices_per_tower))


def _check_deterministic(devices):
    """Raises UserError if the other flags, or the devices, leave something to chance."""
    if FLAGS.seed is None:
        raise UserError('--deterministic needs a seed: give --seed=1, say')
    if machine.is_gpu(devices[0]):
        raise UserError('--deterministic works on CPUs only: hide the GPUs with CUDA_VISIBLE_DEVICES=-1')
    for name in ('intra_op_threads', 'input_threads'):
        if FLAGS[name].value > 1:
            raise UserError('--%s=%d leaves the order of sums, or of images, to chance: leave it out with --deterministic'
                            % (name, FLAGS[name].value))


def held_run(job, is_first=True):
    """Holds --train_dir for the Job: a context manager that yields a RunDirectory, see run_directory.held.

    Args:
      job: a Job.
      is_first: whether --fresh moves aside what is there: not what this process has made itself.
    """
    return run_directory.held(FLAGS.train_dir, FLAGS.fresh and is_first, job)
