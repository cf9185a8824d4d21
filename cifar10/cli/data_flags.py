"""The flags of directories and of the data set, and the data set that they name."""
from absl import flags

from cifar10.data import dataset, download, synthetic

FLAGS = flags.FLAGS


def define_directory(name, default, description):
    """Defines the flag of a directory, whose name must not be empty."""
    flags.DEFINE_string(name, default, description)
    flags.register_validator(name, bool, 'the name of a directory is missing')


def define(default_dataset='cifar10'):
    """Defines --dataset, --data_dir and --data_url."""
    flags.DEFINE_enum('dataset', default_dataset, ['cifar10', 'synthetic'],
                      'The data set: cifar10 is downloaded if it is missing, synthetic is drawn.')
    define_directory('data_dir', dataset.DATA_DIR, '%s or its parent; with --dataset=synthetic the default is %s.'
                     % (dataset.DIRECTORY, synthetic.DATA_DIR))
    flags.DEFINE_string('data_url', download.DATA_URL, 'Where the CIFAR-10 archive is downloaded from.')


def data_dir(dataset_name):
    """The directory that --data_dir names; its default depends on the data set."""
    default_synthetic = dataset_name == 'synthetic' and FLAGS['data_dir'].using_default_value
    return synthetic.DATA_DIR if default_synthetic else FLAGS.data_dir


def prepare(dataset_name):
    """Downloads or draws the data set, unless it is there; returns its `data_dir`.

    Args:
      dataset_name: 'cifar10' or 'synthetic'.

    Raises:
      UserError: it cannot be downloaded or written.
      ValueError: `dataset_name` is unknown.
    """
    path = data_dir(dataset_name)
    if dataset_name == 'synthetic':
        synthetic.maybe_write(path)
    elif dataset_name == 'cifar10':
        download.maybe_download_and_extract(path, FLAGS.data_url)
    else:
        raise ValueError('Unknown data set: %s' % dataset_name)
    return path
