"""What the scripts share: their flags, and errors in one line."""
import os
import signal
import sys

from absl import app, flags
import tensorflow.compat.v1 as tf

from cifar10 import errors, training
from cifar10.cli import recipe_flags
from cifar10.data import dataset, download, synthetic
from cifar10.runs import machine as threads
from cifar10.hparams import CLASSIC

FLAGS = flags.FLAGS


_MAX = 2 ** 31 - 1


def define_directory(name, default, description):
    """Defines the flag of a directory, which must have a name."""
    flags.DEFINE_string(name, default, description)
    flags.register_validator(name, bool, 'the name of a directory is missing')


def define_data_flags():
    """Defines --dataset, --data_dir and --data_url."""
    flags.DEFINE_enum('dataset', 'cifar10', ['cifar10', 'synthetic'],
                      'The data set to make ready: cifar10 is downloaded, synthetic is drawn.')
    define_directory('data_dir', dataset.DATA_DIR,
                     'Parent of %s; for --dataset=synthetic the default is %s.' % (dataset.DIRECTORY, synthetic.DATA_DIR))
    flags.DEFINE_string('data_url', download.DATA_URL, 'Where the CIFAR-10 archive is downloaded from.')


def define_run_flags():
    """Defines the flags of every program that trains."""
    define_data_flags()
    steps = training.Schedule()
    define_directory('train_dir', '/tmp/cifar10_train', 'Directory of checkpoints and summaries; a run in it goes on.')
    flags.DEFINE_integer('max_steps', steps.max_steps, 'Stop after this many steps.', lower_bound=1)
    flags.DEFINE_integer('log_frequency', steps.log_frequency, 'Print a line every this many steps.', lower_bound=1)
    flags.DEFINE_integer('summary_steps', steps.summary_steps, 'Write summaries every this many steps.', lower_bound=1)
    flags.DEFINE_integer('checkpoint_steps', steps.checkpoint_steps, 'Save a checkpoint every this many steps.', lower_bound=1)


def define_training_flags():
    """Defines the flags of the training scripts."""
    define_run_flags()
    recipe_flags.define()
    define_thread_flags()
    flags.DEFINE_boolean('fresh', False, 'Move a run that is in --train_dir aside and start anew.')
    flags.DEFINE_integer('max_to_keep', 5, 'Keep this many of the latest checkpoints; 0 keeps all.', lower_bound=0,
                         upper_bound=_MAX)
    flags.DEFINE_integer('seed', None, 'Seed of initial values and distortions. The order of the images still depends on the '
                         'timing of threads.', lower_bound=0, upper_bound=_MAX)
    flags.DEFINE_boolean('log_device_placement', False, 'Print the device of every operation.')


def define_batch_size():
    """Defines --batch_size."""
    flags.DEFINE_integer('batch_size', CLASSIC.batch_size, 'Examples a tower and step.', lower_bound=1, upper_bound=2 ** 20)


def define_num_gpus():
    """Defines --num_gpus."""
    flags.DEFINE_integer('num_gpus', 1, 'Number of towers: one a GPU where there are as many.', lower_bound=1)


THREAD_FLAGS = {'intra_op_threads': 'that share an operation', 'inter_op_threads': 'for operations side by side',
                'input_threads': 'that make batches ready'}


def define_thread_flags():
    """Defines --intra_op_threads, --inter_op_threads and --input_threads."""
    for name, description in THREAD_FLAGS.items():
        flags.DEFINE_integer(name, 0, 'Threads %s; 0 chooses by the number of cores.' % description, lower_bound=0,
                             upper_bound=1024)


def data_dir():
    """The parent of cifar-10-batches-bin that the flags name."""
    default_synthetic = FLAGS.dataset == 'synthetic' and FLAGS['data_dir'].using_default_value
    return synthetic.DATA_DIR if default_synthetic else FLAGS.data_dir


def prepare_data():
    """Downloads or draws the data set that the flags name unless it is there; returns its `data_dir`."""
    if FLAGS.dataset == 'synthetic':
        synthetic.maybe_write(data_dir())
    else:
        download.maybe_download_and_extract(data_dir(), FLAGS.data_url)
    return data_dir()


def choose_threads(devices, batch_size):
    """The Threads for these devices and batches of so many examples a tower, as far as flags do not set them."""
    return threads.choose(devices, batch_size, *[FLAGS[name].value for name in THREAD_FLAGS])


def set_seed(resumed):
    """Seeds the graph with --seed, if it is given; a resumed run draws anew rather than what the first steps drew."""
    if FLAGS.seed is not None:
        tf.set_random_seed(FLAGS.seed + (resumed.step if resumed else 0))


def schedule(num_steps):
    """The training.Schedule that the flags set, for a run of at most so many steps."""
    flagged = training.Schedule(*[FLAGS[field].value for field in training.Schedule._fields])
    return flagged._replace(max_steps=min(flagged.max_steps, num_steps))


def use_graph_mode():
    """Sets TensorFlow up as the scripts want it."""
    tf.logging.set_verbosity(tf.logging.ERROR)  # no deprecation notices: this package is what they warn of
    tf.disable_control_flow_v2()  # or TensorBoard shows a function for either side of each tf.cond in the moving averages


class _CtrlC:
    """Raises KeyboardInterrupt, and remembers it: where C++ looks for an attribute, an exception in Python is lost."""
    received = False

    def __call__(self, number, frame):
        self.received = True
        raise KeyboardInterrupt


def run(main, commands=()):
    """Parses the command line and calls `main`, with the command if there are `commands` to choose from.

    A user's mistake, as opposed to a bug, gives one line on stderr and exit status 1, or 2 for the command line itself.
    """
    signal.signal(signal.SIGINT, _CtrlC())  # the scripts turn it off while they import
    use_graph_mode()

    def parse(argv):
        try:
            arguments = FLAGS(argv)[1:]
        except flags.Error as error:
            _fail(2, 'error: %s; --help lists the flags' % ' '.join(str(error).split()))
        if commands and not arguments:
            _fail(2, 'error: a command is missing: %s or %s; --help tells more' % (', '.join(commands[:-1]), commands[-1]))
        unexpected = arguments[1:] if commands and arguments[0] in commands else arguments
        if unexpected:
            _fail(2, 'error: unexpected argument %s; --help tells more' % unexpected[0])
        return arguments

    def call(arguments):
        try:
            main(*arguments)
        except (errors.UserError, OSError) as error:
            _fail(1, 'error: %s' % error)
        except tf.errors.ResourceExhaustedError as error:
            _fail(1, 'error: %s: memory or disk does not suffice; choose a smaller --batch_size, or make room'
                  % errors.reason(error))
        except (tf.errors.NotFoundError, tf.errors.PermissionDeniedError) as error:  # a file vanished, or cannot be read
            _fail(1, 'error: %s' % errors.reason(error))
        except BaseException as error:
            if _is_interrupt(error):
                _fail(130, 'interrupted')
            raise

    app.run(call, flags_parser=parse)


def _is_interrupt(error):
    """Whether Ctrl-C is behind the error: TensorFlow's context managers raise errors of their own on top of it."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _fail(status, message):
    print('%s: %s' % (os.path.basename(sys.argv[0]), message), file=sys.stderr, flush=True)
    sys.exit(status)
