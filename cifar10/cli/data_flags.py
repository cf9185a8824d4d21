"""Flags of directories, files, data set and checkpoint; preparation of the data set."""

import os

from absl import flags

from cifar10 import networks
from cifar10.data import catalog, dataset, preparation, synthetic
from cifar10.errors import UserError, show
from cifar10.runs import run_record
from cifar10.system import directories, signals

FLAGS = flags.FLAGS


class PathParser(flags.ArgumentParser):
    """Parser of a local path, which may begin with ~: a shell does not expand it after --NAME=."""

    def parse(self, argument):
        """Return the path with the home directory instead of ~."""
        if not argument:
            raise ValueError('the name is missing')
        if '://' in argument:
            raise ValueError('it is not a local path')
        return os.path.expanduser(argument)


class _DataDirParser(PathParser):
    """Parser of --data_dir: an archive of a published data set stands for the data set."""

    def parse(self, argument):
        """Return the directory of the data set, which is made beside the archive."""
        parent, name = os.path.split(super().parse(argument))
        for published in catalog.PUBLISHED.values():
            if name in [archive.name for archive in published.archives]:
                name = published.directory
        return os.path.join(parent, name)


def define_path(name, default, description, check=None, parser=PathParser):
    """Define the flag of a local path.

    Args:
      name: name of the flag.
      default: its default.
      description: its help.
      check: a function of the path that raises UserError, or None.
      parser: the class of the parser.
    """

    def is_valid(path):
        try:
            if check and path is not None:
                check(path)
        except UserError as error:
            raise flags.ValidationError(str(error))
        return True

    flags.DEFINE(parser(), name, default, description, serializer=flags.ArgumentSerializer())
    flags.register_validator(name, is_valid)


def define(default_dataset='cifar10'):
    """Define --dataset and --data_dir."""
    flags.DEFINE_enum(
        'dataset',
        default_dataset,
        list(dataset.DATA_DIRS),
        f'Data set. If --data_dir holds none, {" and ".join(catalog.PUBLISHED)} are downloaded, and synthetic is '
        'generated.',
    )
    define_path(
        'data_dir',
        dataset.DATA_DIR,
        f'Directory of a data set, or the parent of {dataset.CIFAR10_DIRECTORY}. Default with --dataset=cifar100: '
        f'{dataset.DATA_DIRS["cifar100"]}, with --dataset=synthetic: {dataset.DATA_DIRS["synthetic"]}.',
        lambda path: directories.check_no_file(
            path, 'give the directory of a data set, as `cifar10_dataset.py convert` makes it'
        ),
        _DataDirParser,
    )


def data_dir(dataset_name):
    """Return --data_dir, or the default of the data set."""
    is_given = not FLAGS['data_dir'].using_default_value
    return FLAGS.data_dir if is_given else dataset.DATA_DIRS[dataset_name]


def check_classes_of_run(directory):
    """Raise UserError, before a download of CIFAR-10, if a run was trained on other classes."""
    is_default = FLAGS.dataset == 'cifar10' and FLAGS['data_dir'].using_default_value
    if is_default and not dataset.is_present(data_dir('cifar10')):
        run_record.check_classes(directory, dataset.CLASS_NAMES)


def dataset_from_flags():
    """Return the Dataset of --dataset; download or generate it if it is missing.

    Raises:
      UserError: the parent of --data_dir does not exist; see also `prepared_dataset`.
    """
    path = data_dir(FLAGS.dataset)
    parent = os.path.dirname(os.path.abspath(path))
    directories.check_exists(parent, 'make it, or give another --data_dir')
    if not os.path.exists(path):  # A mistyped name is then seen.
        show(f'Creating the directory {path} for the data set')
    if not FLAGS['dataset'].present and use_copy(path):
        return dataset.read(path)
    return prepared_dataset(FLAGS.dataset)


def use_copy(path, published=None):
    """Call preparation.use_copy; a signal removes unfinished files."""
    with signals.StopRequest(raises=True):
        return preparation.use_copy(path, published, show)


def prepared_dataset(dataset_name):
    """Return the Dataset with a name of --dataset; download or generate it if it is missing.

    Raises:
      UserError: it cannot be downloaded or written, or --data_dir holds another one.
    """
    path, published = data_dir(dataset_name), catalog.PUBLISHED.get(dataset_name)
    with signals.StopRequest(raises=True):
        if published:
            preparation.prepare(published, path, show)
        else:
            synthetic.maybe_write(path, progress=show)
    return dataset.read(dataset.files_dir(path, published))


def define_network(default):
    """Define --network; the default of the trainers is `networks.DEFAULT`, else None."""
    define_path(
        'network',
        default,
        f'Network: {", ".join(networks.names())}, or the path of a .py file with a function inference.'
        + ('' if default else ' Default: that of the run, unless it is a file.'),
        networks.check,
    )


def define_checkpoint():
    """Define --checkpoint_dir, --checkpoint and --network."""
    define_network(None)
    define_checkpoint_dir(
        'checkpoint_dir', 'Directory of the checkpoints.', '--checkpoint takes a checkpoint'
    )
    define_path(
        'checkpoint', 'latest', 'Checkpoint: latest, or a path.', directories.check_no_wildcards
    )


def define_checkpoint_dir(name, description, other_flag):
    """Define the flag of the directory of a run; `other_flag` says which flag takes a file."""

    def check(path):
        directories.check_no_file(path, f'give another one; {other_flag}')
        directories.check_no_wildcards(path)

    define_path(name, '/tmp/cifar10_train', description, check)


def chosen_checkpoint():
    """Return the path of --checkpoint; --checkpoint_dir if it is `latest`."""
    latest = FLAGS.checkpoint == 'latest'
    return FLAGS.checkpoint_dir if latest else os.path.abspath(FLAGS.checkpoint)


def directory_of_checkpoint():
    """Return the directory of the chosen checkpoint."""
    path = chosen_checkpoint()
    return path if os.path.isdir(path) or FLAGS.checkpoint == 'latest' else os.path.dirname(path)


def check_checkpoint_exists():
    """Raise UserError if --checkpoint needs --checkpoint_dir, but the directory is missing."""
    if FLAGS.checkpoint == 'latest':
        directories.check_exists(
            FLAGS.checkpoint_dir, 'train first, or give another --checkpoint_dir'
        )
