#!/usr/bin/env python3
"""Downloads, generates, converts, divides and verifies data sets.

cifar10_dataset.py download
    downloads CIFAR-10, or CIFAR-100 with --dataset=cifar100, to --data_dir
cifar10_dataset.py synthetic
    generates the synthetic data set in --data_dir
cifar10_dataset.py convert SRC OUT
    converts SRC, which has one folder of images per class, to a data set in OUT; SRC can also be
    CIFAR-10 or CIFAR-100 for Python: the archive, or the directory with its files
cifar10_dataset.py holdout SRC OUT
    divides the training images of SRC into training and test images in OUT
cifar10_dataset.py info
    verifies the data set in --data_dir; prints its classes and the number of their images
"""

import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isfile(CHECKOUT + '/cifar10/__init__.py'):  # Else this script is installed.
    sys.path.insert(0, CHECKOUT)

from cifar10.cli import data_flags, program

# isort: split
from absl import flags

from cifar10.data import catalog, conversion, copies, dataset, dataset_writer, verification
from cifar10.errors import UserError
from cifar10.system import directories, signals

FLAGS = flags.FLAGS


def prepare(name=None):
    """Download the data set of --dataset, or generate the synthetic one, unless it exists."""
    print_counts(data_flags.prepared_dataset(name or FLAGS.dataset))


def convert(source, out):
    """Convert folders of images, or a published data set; return 1 if a file is unusable."""
    (published, source), num_damaged = copies.identify(source), 0
    if published is None and os.path.isfile(source):
        raise UserError(
            f'{source} is not the archive of a published data set: '
            'give a good copy, or a directory of images'
        )
    with signals.StopRequest(raises=True):
        if published:
            with dataset_writer.new_dataset(out, data_flags.show) as directory:
                copies.write_binary_files(published, source, directory)
        else:
            num_damaged = conversion.convert(
                source, out, data_flags.show, FLAGS.test_fraction, FLAGS.seed
            )
    print_counts(dataset.read(out))
    return int(num_damaged > 0)


def hold_out(source, out):
    """Divide the training images of a data set into training and test images."""
    directories.check_exists(source, 'give the --data_dir of a data set')
    data_flags.use_copy(source)
    with signals.StopRequest(raises=True):
        dataset_writer.hold_out(
            dataset.read(source), out, FLAGS.num_examples, FLAGS.seed, data_flags.show
        )
    print_counts(dataset.read(out))


def info():
    """Verify a data set and its checksums, if any; print the number of images per class."""
    path = data_flags.data_dir(FLAGS.dataset)
    published = catalog.PUBLISHED.get(FLAGS.dataset) if FLAGS['dataset'].present else None
    if not data_flags.use_copy(path, published):
        remedy = 'make it with `cifar10_dataset.py download`, or give another --data_dir'
        raise UserError(f'There is no such data set in {path}: {remedy}')
    found = verification.verify(dataset.read(dataset.files_dir(path, published)))
    for split in (found.train, found.test):
        verification.verify_checksums(split)
    names = found.class_names or list(map(str, range(found.num_classes)))
    width = max(map(len, names))
    print(f'{"":<{width}} {"training":>12} {"test":>12}')
    for name, in_training, in_test in zip(names, found.train.counts, found.test.counts):
        print(f'{name:<{width}} {in_training:12} {in_test:12}')
    print_counts(found)


def print_counts(found):
    """Print the number of examples and the classes of a Dataset."""
    found = verification.verify(found)
    print(
        f'{found.train.num_examples} training and {found.test.num_examples} test examples of '
        f'{dataset.format_class_names(found.class_names)} in {found.directory}'
    )


COMMANDS = {  # function, arguments
    'download': (prepare, ()),
    'synthetic': (lambda: prepare('synthetic'), ()),
    'convert': (convert, ('SRC', 'OUT')),
    'holdout': (hold_out, ('SRC', 'OUT')),
    'info': (info, ()),
}


def define_flags():
    """Define the flags."""
    data_flags.define()
    flags.DEFINE_float(
        'test_fraction',
        None,
        'convert: fraction of each class for the test images. Default: the images in the folder test, else 0.1.',
        lower_bound=0.001,
        upper_bound=0.999,
    )
    flags.DEFINE_integer('seed', 0, 'convert, holdout: seed of the selection of test images.', 0)
    flags.DEFINE_integer('num_examples', 5000, 'holdout: number of test images.', 1)


def main(command, *arguments):
    """Run a command; return the exit status."""
    return COMMANDS[command][0](*arguments)


ARGUMENTS = program.start(
    __name__,
    define_flags,
    arguments={name: names for name, (_, names) in COMMANDS.items()},
    needs_tensorflow=False,
)

if __name__ == '__main__':
    program.run(main, ARGUMENTS, uses_gpus=False)
