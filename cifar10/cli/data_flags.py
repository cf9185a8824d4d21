"""Flags of directories, files, data set and checkpoint; preparation of the data set."""

import os

from absl import flags

from cifar10 import networks
from cifar10.data import catalog, dataset
from cifar10.errors import UserError, show
from cifar10.runs import run_record
from cifar10.system import directories, files, signals

FLAGS = flags.FLAGS
_DEFAULT_DATA_DIRS = {
    **{name: dataset.default_data_dir(name) for name in catalog.PUBLISHED},
    'synthetic': dataset.SYNTHETIC_DATA_DIR,
}


class PathParser(flags.ArgumentParser):
    """Parser of a path, which may begin with ~: a shell does not expand it after --NAME=."""

    def parse(self, argument):
        """Return the path with the home directory instead of ~."""
        return os.path.expanduser(super().parse(argument))


def _define_path(name, default, description, check):
    """Define the flag of a path; see `validate`."""
    flags.DEFINE(PathParser(), name, default, description, serializer=flags.ArgumentSerializer())
    validate(name, check)


def validate(name, check):
    """Register a check of a flag's value; reject an empty name, accept None.

    Args:
      name: name of the flag.
      check: a function of the value that raises UserError.
    """

    def is_valid(value):
        if value == '':
            raise flags.ValidationError('the name is missing')
        try:
            if value is not None:
                check(value)
        except (UserError, OSError) as error:
            # OSError: such as a removed working directory
            raise flags.ValidationError(str(error))
        return True

    flags.register_validator(name, is_valid)


def define_directory(name, default, description, check=directories.check_no_file):
    """Define the flag of a local directory; `check` raises UserError for an unusable one."""
    _define_path(name, default, description, files.check_name)
    validate(name, check)


def define_output_file(name, description):
    """Define the flag of an output file."""

    def check(path):
        files.check_name(path)
        # /dev/stdout and /dev/null must not be replaced.
        if os.path.islink(path) or os.path.exists(path) and not os.path.isfile(path):
            raise UserError(f'{path} is not a regular file: name a file')

    _define_path(name, None, description, check)


def define(default_dataset='cifar10'):
    """Define --dataset and --data_dir."""
    flags.DEFINE_enum(
        'dataset',
        default_dataset,
        list(_DEFAULT_DATA_DIRS),
        f'Data set. If --data_dir holds none, {" and ".join(catalog.PUBLISHED)} are downloaded, and synthetic is '
        'generated.',
    )
    others = [
        f'with --dataset={name}: {path}'
        for name, path in _DEFAULT_DATA_DIRS.items()
        if path != dataset.DATA_DIR
    ]
    define_directory(
        'data_dir',
        dataset.DATA_DIR,
        f'Directory of a data set, or the parent of {dataset.CIFAR10_DIRECTORY}. Default {", ".join(others)}.',
    )


def data_dir(dataset_name):
    """Return --data_dir, or the default of the data set."""
    is_default = FLAGS['data_dir'].using_default_value
    return _DEFAULT_DATA_DIRS[dataset_name] if is_default else FLAGS.data_dir


def check_data_dir_exists():
    """Raise UserError unless --data_dir is a directory."""
    directories.check_exists(
        data_dir(FLAGS.dataset),
        'make a data set with `cifar10_dataset.py download` or `cifar10_dataset.py '
        'synthetic`, or give another --data_dir',
    )


def check_dataset_of_run(directory, alternative):
    """Compare the default --data_dir of --dataset with the record of a run, before a download.

    Args:
      directory: the directory of the run.
      alternative: the end of the remedy.

    Raises:
      UserError: the run was trained on other data, or its record is damaged.
    """
    record = run_record.read(directory)
    names = record.class_names
    is_default = FLAGS['data_dir'].using_default_value
    if not names or not is_default or names == dataset.read(data_dir(FLAGS.dataset)).class_names:
        return
    # 'cifar10', the default, is also recorded for a run on own data with --data_dir.
    remedy = f'give --dataset={record.dataset} (and --data_dir, if it had one)'
    is_other = record.dataset not in (None, 'cifar10', FLAGS.dataset)
    if not is_other:
        remedy, published = 'give --data_dir of its data', catalog.PUBLISHED.get(FLAGS.dataset)
        is_other = published and len(names) != published.num_classes
    if is_other or FLAGS.dataset == 'cifar10' and names != dataset.CLASS_NAMES:
        raise UserError(
            f'The run in {directory} was trained on other data ({dataset.format_class_names(names)}): '
            f'{remedy}, or {alternative}'
        )


def dataset_from_flags():
    """Return the Dataset of --dataset; download or generate it if it is missing.

    Raises:
      UserError: the parent of --data_dir does not exist; see also `prepared_dataset`.
    """
    path = data_dir(FLAGS.dataset)
    absolute = os.path.abspath(path)
    directories.check_exists(os.path.dirname(absolute), 'make it, or give another --data_dir')
    if not os.path.exists(path):
        # Show a mistyped name.
        show(f'Creating the directory {absolute} for the data set')
    if FLAGS['dataset'].present or not dataset.is_present(path) and not _use_copy(path):
        return prepared_dataset(FLAGS.dataset)
    return dataset.read(path)


def _use_copy(path, published=None):
    from cifar10.data import preparation  # not needed if the files exist

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
            from cifar10.data import preparation  # seldom needed

            preparation.prepare(published, path, show, alternative='--dataset=synthetic')
        else:
            from cifar10.data import synthetic

            synthetic.maybe_write(path, progress=show)
    return dataset.read(dataset.files_dir(path, published))


def existing_dataset():
    """Return the Dataset in --data_dir, which may be made from a copy there.

    Raises:
      UserError: the directory does not exist, or lacks the published data set of --dataset.
    """
    path = data_dir(FLAGS.dataset)
    check_data_dir_exists()
    published = catalog.PUBLISHED.get(FLAGS.dataset) if FLAGS['dataset'].present else None
    _use_copy(path, published)
    directory = dataset.files_dir(path, published)
    if published:
        directories.check_exists(
            directory,
            f'download it with `cifar10_dataset.py download --dataset={FLAGS.dataset}`, or leave out --dataset',
        )
    return dataset.read(directory)


def define_network(default):
    """Define --network; the default of the trainers is `networks.DEFAULT`, else None."""
    _define_path(
        'network',
        default,
        f'Network: {", ".join(networks.names())}, or the path of a .py file with a function inference.'
        + ('' if default else ' Default: that of the run, unless it is a file.'),
        networks.check,
    )


def define_checkpoint():
    """Define --checkpoint_dir, --checkpoint and --network."""
    define_network(None)
    define_directory(
        'checkpoint_dir',
        '/tmp/cifar10_train',
        'Directory of the checkpoints.',
        directories.check_checkpoint_dir,
    )
    define_directory(
        'checkpoint',
        'latest',
        'Checkpoint: latest, or a path.',
        directories.check_no_wildcards,
    )


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


def check_top_k(num_classes):
    """Raise UserError if --top_k exceeds the number of classes."""
    if FLAGS.top_k and FLAGS.top_k > num_classes:
        raise UserError(
            f'--top_k={FLAGS.top_k} is more than the {num_classes} classes: '
            f'give at most {num_classes}'
        )
