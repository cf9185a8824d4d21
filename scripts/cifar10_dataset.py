#!/usr/bin/env python3
"""Makes a data set ready, or checks the one that is there.

  cifar10_dataset.py download    downloads CIFAR-10 to --data_dir
  cifar10_dataset.py synthetic   draws the synthetic data set there
  cifar10_dataset.py verify      checks every file of the data set there
"""
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports: no traceback

from absl import flags

from cifar10.cli import program as command_line
from cifar10.data import dataset

FLAGS = flags.FLAGS


def main(command):
    """Carries out one command, then says what is there."""
    if command != 'verify':
        FLAGS.dataset = {'download': 'cifar10', 'synthetic': 'synthetic'}[command]
        command_line.prepare_data()
    data_dir = command_line.data_dir()
    train, test = dataset.verify(dataset.train_files(data_dir)), dataset.verify(dataset.test_files(data_dir))
    print('%d training and %d test examples of %s in %s'
          % (train, test, ', '.join(dataset.class_names(data_dir) or ['unnamed classes']), data_dir))


if __name__ == '__main__':
    command_line.define_data_flags()
    flags.adopt_module_key_flags(command_line)
    command_line.run(main, commands=('download', 'synthetic', 'verify'))
