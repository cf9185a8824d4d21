"""The flags of directories and files and of the data set, and the data set that they name."""
import os

from absl import flags

from cifar10 import files
from cifar10.data import dataset, download, synthetic, writing
from cifar10.errors import UserError
from cifar10.runs import signals

FLAGS = flags.FLAGS

_ARCHIVES = {'cifar10': download.CIFAR10, 'cifar100': download.CIFAR100}


def validate(name, check):
    """Has `check` look at the value of a flag before the script starts; its UserError is then a mistake in the command line."""
    def is_valid(value):
        try:
            check(value)
        except (UserError, OSError) as error:  # OSError: the working directory has been removed, say
            raise flags.ValidationError(str(error))
        return True
    flags.register_validator(name, is_valid)


def define_directory(name, default, description, check=files.check_name):
    """Defines the flag of a directory on this machine; `check` raises UserError for one that cannot be used."""
    flags.DEFINE_string(name, default, description)
    flags.register_validator(name, bool, 'the name of a directory is missing')
    validate(name, files.check_name)
    validate(name, check)


def define_output(name, default, description):
    """Defines the flag of a file that is written."""
    flags.DEFINE_string(name, default, description)
    validate(name, lambda path: path is None or _check_output(path))


def _check_output(path):
    files.check_name(path)
    if os.path.islink(path):  # it would be replaced: /dev/stdout, say
        raise UserError('%s is a link: name a file' % path)
    if os.path.exists(path):
        files.check_regular(path, 'name a file')


def define(default_dataset='cifar10'):
    """Defines --dataset, --data_dir and --data_url."""
    flags.DEFINE_enum('dataset', default_dataset, ['cifar10', 'cifar100', 'synthetic'],
                      'The data set that is made if --data_dir holds none: cifar10 and cifar100 are downloaded, synthetic is drawn.')
    define_directory('data_dir', dataset.DATA_DIR, 'Directory of a data set, or the parent of %s; with --dataset=cifar100 the default '
                     'is %s, with --dataset=synthetic %s.' % (dataset.DIRECTORY, dataset.CIFAR100_DATA_DIR, synthetic.DATA_DIR))
    flags.DEFINE_string('data_url', None, 'Where the archive is downloaded from; by default its official place.')
    flags.DEFINE_enum('label', None, dataset.LABELS, 'With CIFAR-100: the 100 classes (fine, the default) or the 20 superclasses.')


def data_dir(dataset_name):
    """The directory that --data_dir names; its default depends on the data set."""
    defaults = {'cifar100': dataset.CIFAR100_DATA_DIR, 'synthetic': synthetic.DATA_DIR}
    path = defaults.get(dataset_name, FLAGS.data_dir) if FLAGS['data_dir'].using_default_value else FLAGS.data_dir
    return dataset.files_dir(path, dataset.CIFAR100) if dataset_name == 'cifar100' else path


def prepare(dataset_name, is_wanted=None):
    """Downloads or draws the data set, unless there is one; returns its `data_dir`.

    Args:
      dataset_name: 'cifar10', 'cifar100' or 'synthetic'.
      is_wanted: whether the user wants this very data set, not any that is there; None for whether --dataset is given.

    Raises:
      UserError: it cannot be downloaded or written.
      ValueError: `dataset_name` is unknown.
    """
    path = data_dir(dataset_name)
    is_wanted = not FLAGS['dataset'].using_default_value if is_wanted is None else is_wanted
    is_present = writing.is_present(dataset.find(path))
    if FLAGS.label and dataset_name != 'cifar100' and not is_present:
        raise UserError('--label=%s is for CIFAR-100: give --dataset=cifar100 too, or leave it out' % FLAGS.label)
    with signals.Interruptible():
        if is_present and not is_wanted:
            pass
        elif dataset_name == 'synthetic':
            synthetic.maybe_write(path)
        elif dataset_name in _ARCHIVES:
            archive = _ARCHIVES[dataset_name]
            source = archive.source._replace(url=FLAGS.data_url) if FLAGS.data_url is not None else archive.source
            download.prepare(archive._replace(source=source), path)
        else:
            raise ValueError('Unknown data set: %s' % dataset_name)
    dataset.read(path, FLAGS.label)  # there may be no such labels
    return path
