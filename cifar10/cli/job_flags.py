"""The flags of training; given_job makes a Job of them."""

from absl import flags

from cifar10 import directories
from cifar10.cli import data_flags, recipe_flags
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, MAX_STEPS, VARIABLE_STRATEGIES, Intervals

FLAGS = flags.FLAGS

_MAX = 2**31 - 1
MAX_DEVICES = 64


def define():
    """Defines the flags of the training scripts, except --num_gpus."""
    data_flags.define()
    define_run()
    recipe_flags.define()
    define_threads()
    flags.DEFINE_boolean(
        'fresh', False, 'Move an existing run in --train_dir aside and start a new one.'
    )
    flags.DEFINE_integer(
        'max_to_keep',
        Intervals().max_to_keep,
        'Checkpoints to keep, the latest ones; 0 keeps all.',
        lower_bound=0,
        upper_bound=_MAX,
    )
    flags.DEFINE_integer(
        'eval_steps',
        None,
        'Steps between two evaluations on the test images. By default only the last checkpoint '
        'is evaluated; with 0, not even that.',
        lower_bound=0,
        upper_bound=_MAX,
    )
    flags.DEFINE_boolean(
        'keep_best',
        False,
        'Keep the checkpoint of the best precision too, as best.ckpt-STEP; evaluates every '
        '--checkpoint_steps unless --eval_steps is given.',
    )
    flags.DEFINE_integer(
        'profile_step',
        None,
        'Trace this step: Perfetto and chrome://tracing open trace-N.json in --train_dir.',
        lower_bound=1,
        upper_bound=_MAX,
    )
    flags.DEFINE_integer(
        'seed',
        None,
        'Seed of initial values and distortions. The order of the images still depends on the '
        'timing of threads, unless --deterministic is given.',
        lower_bound=0,
        upper_bound=_MAX,
    )
    flags.DEFINE_boolean(
        'deterministic',
        False,
        'Let --seed fix everything: two runs on one machine give the same weights, bit for '
        'bit. Only without GPUs.',
    )
    flags.DEFINE_boolean('log_device_placement', False, 'Print the device of every operation.')


def define_run():
    """Defines --train_dir, --max_steps and the intervals."""
    data_flags.define_directory(
        'train_dir',
        '/tmp/cifar10_train',
        'Directory of checkpoints and summaries; an existing run is resumed.',
        directories.check_for_checkpoints,
    )
    intervals = Intervals()
    flags.DEFINE_integer(
        'max_steps',
        MAX_STEPS,
        'End the run at this step; the steps of earlier starts count.',
        lower_bound=1,
        upper_bound=_MAX,
    )
    for name, description in [
        ('log_frequency', 'log lines'),
        ('summary_steps', 'summaries'),
        ('checkpoint_steps', 'checkpoints'),
    ]:
        flags.DEFINE_integer(
            name,
            getattr(intervals, name),
            'Steps between two %s.' % description,
            lower_bound=1,
            upper_bound=_MAX,
        )


def define_batch_size():
    """Defines --batch_size, for scripts without --recipe."""
    flags.DEFINE_integer(
        'batch_size',
        CLASSIC.batch_size,
        'Examples per tower per step.',
        lower_bound=1,
        upper_bound=2**20,
    )


def define_num_gpus():
    """Defines --num_gpus."""
    flags.DEFINE_integer(
        'num_gpus',
        1,
        'Number of towers; each has a GPU of its own if there are enough.',
        lower_bound=1,
        upper_bound=MAX_DEVICES,
    )


def define_placement():
    """Defines --devices_per_tower and --variable_strategy."""
    flags.DEFINE_integer(
        'devices_per_tower',
        1,
        'Devices over which the layers of each tower '
        'are divided; --num_gpus then is the number of devices, and a multiple of this.',
        lower_bound=1,
        upper_bound=MAX_DEVICES,
    )
    flags.DEFINE_enum(
        'variable_strategy',
        VARIABLE_STRATEGIES[0],
        VARIABLE_STRATEGIES,
        'Where the variables live: on the CPU, on the first device, or spread over all devices, balanced by bytes.',
    )


def define_threads():
    """Defines --intra_op_threads, --inter_op_threads and --input_threads."""
    for name, description in [
        ('intra_op_threads', 'that share one operation'),
        ('inter_op_threads', 'for operations that run in parallel'),
        ('input_threads', 'that fill the prefetch queue'),
    ]:
        flags.DEFINE_integer(
            name,
            0,
            'Threads %s; 0 chooses by the number of cores.' % description,
            lower_bound=0,
            upper_bound=1024,
        )


def check_run():
    """Raises UserError if the flags that `define_run` defines contradict those of the data."""
    data_flags.check_different('train_dir', 'data_dir')


def check():
    """Raises UserError if the flags that `define` defines contradict each other, or have no
    effect."""
    check_run()
    recipe_flags.given_hparams()
    if FLAGS.keep_best and FLAGS.eval_steps == 0:
        raise UserError(
            '--keep_best needs evaluations, and --eval_steps=0 makes none: leave out one of them'
        )
    if FLAGS.profile_step and FLAGS.profile_step > FLAGS.max_steps:
        raise UserError(
            '--profile_step=%d is after the end of the run, --max_steps=%d: give a step up to that'
            % (FLAGS.profile_step, FLAGS.max_steps)
        )
    if not FLAGS.deterministic:
        return
    if FLAGS.seed is None:
        raise UserError('--deterministic needs a seed: give --seed=1, say')
    for name in ('intra_op_threads', 'input_threads'):
        if FLAGS[name].value > 1:
            raise UserError(
                '--%s=%d leaves the order of sums, or of images, to chance: leave it out with --deterministic'
                % (name, FLAGS[name].value)
            )
