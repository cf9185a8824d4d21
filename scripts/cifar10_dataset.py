#!/usr/bin/env python3
"""Makes a data set ready, or checks an existing one.

  cifar10_dataset.py download    downloads CIFAR-10 to --data_dir
  cifar10_dataset.py synthetic   draws the synthetic data set there
  cifar10_dataset.py verify      checks every file of the data set there
"""
from cifar10.cli import quiet

quiet.start(__name__)

from absl import flags

from cifar10.cli import data_flags, program
from cifar10.data import dataset

FLAGS = flags.FLAGS
DATASETS = {'download': 'cifar10', 'synthetic': 'synthetic'}


def main(command):
    """Carries out one command, then prints what is there."""
    data_dir = data_flags.data_dir(FLAGS.dataset) if command == 'verify' else data_flags.prepare(DATASETS[command])
    num_train, num_test = dataset.verify(dataset.train_files(data_dir)), dataset.verify(dataset.test_files(data_dir))
    print('%d training and %d test examples of %s in %s'
          % (num_train, num_test, ', '.join(dataset.class_names(data_dir) or ['unnamed classes']), data_dir))


if __name__ == '__main__':
    data_flags.define()
    program.run(main, program.parse(('download', 'synthetic', 'verify'), needs_tensorflow=False))
