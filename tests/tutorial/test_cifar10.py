"""The tutorial's module cifar10: effects of flags and constants."""

import dataclasses
import importlib
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC, RunLength
from cifar10.data import preparation
from cifar10.tutorial import cifar10_input, train as train_lib
from tests.helpers import programs


@pytest.fixture
def cifar10(monkeypatch, data_dir):
    """The module in a program that has the flag --data_dir and flags of its own."""
    argv = ['program.py', '-v', '--unknown=1', '-n', '3', '--data_dir=' + data_dir]
    monkeypatch.setattr(sys, 'argv', argv)
    with programs.own_flags():
        yield importlib.import_module('cifar10.tutorial.cifar10')
        del sys.modules['cifar10.tutorial.cifar10']


def test_the_flags_in_both_forms(cifar10, data_dir):
    given = cifar10.parser.parse_args(['--batch_size=7', '--use_fp16=1'])
    assert (given.batch_size, given.data_dir, given.use_fp16) == (7, '/tmp/cifar10_data', True)
    assert cifar10.inputs(True)[0].shape.as_list() == [128, 24, 24, 3]
    assert not cifar10.FLAGS.is_parsed()  # The program may define more flags.
    cifar10.FLAGS.batch_size = 50
    assert cifar10.inputs(eval_data=True)[1].shape.as_list() == [50]
    assert cifar10.distorted_inputs()[0].shape.as_list() == [50, 24, 24, 3]
    assert cifar10.inputs(False, batch_size=3)[0].shape.as_list() == [3, 24, 24, 3]


def test_flags_that_a_program_replaces(cifar10, data_dir):
    cifar10.FLAGS = cifar10.parser.parse_args(['--batch_size=9', '--data_dir=' + data_dir])
    assert cifar10.inputs(True)[1].shape.as_list() == [9]


def test_a_program_may_define_the_flags(monkeypatch, data_dir):
    monkeypatch.setattr(sys, 'argv', ['program.py'])
    with programs.own_flags():
        tf.app.flags.DEFINE_integer('batch_size', 10, 'of the program')
        module = importlib.import_module('cifar10.tutorial.cifar10')
        assert module.inputs(True, data_dir)[1].shape.as_list() == [10]
        tf.app.flags.DEFINE_string('data_dir', data_dir, 'after it')
        assert module.distorted_inputs()[1].shape.as_list() == [10]
        del sys.modules['cifar10.tutorial.cifar10']


def test_a_constant_set_here_counts_before_one_set_in_the_input(cifar10, monkeypatch, capsys):
    monkeypatch.setattr(cifar10_input, 'IMAGE_SIZE', 28)
    monkeypatch.setattr(cifar10_input, 'NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN', 200)
    assert cifar10.distorted_inputs()[0].shape.as_list() == [128, 28, 28, 3]
    assert 'Filling queue with 80 CIFAR' in capsys.readouterr().out
    cifar10.IMAGE_SIZE, cifar10.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 32, 250
    for images, _ in cifar10.distorted_inputs(), cifar10.inputs(True):
        assert images.shape.as_list() == [128, 32, 32, 3]
    assert 'Filling queue with 100 CIFAR' in capsys.readouterr().out


def test_the_network_has_the_classes_that_are_set_and_summaries(cifar10):
    cifar10.NUM_CLASSES = 6
    with tf.name_scope('tower_0'):
        assert cifar10.inference(np.zeros([2, 24, 24, 3], np.float32)).shape.as_list() == [2, 6]
    summaries = [tensor.op.name for tensor in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert len(summaries) == 10
    assert summaries[:2] == ['tower_0/conv1/conv1/activations', 'tower_0/conv1/conv1/sparsity']


def test_the_download(cifar10, monkeypatch, data_dir):
    """It downloads to --data_dir, from any host unless the program has changed DATA_URL."""
    calls = []
    monkeypatch.setattr(
        preparation, 'maybe_download_and_extract', lambda *arguments: calls.append(arguments)
    )
    cifar10.maybe_download_and_extract()
    assert cifar10.DATA_URL == 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz'
    cifar10.DATA_URL = 'http://localhost/archive.tar.gz'
    cifar10.maybe_download_and_extract()
    assert calls == [(data_dir, None), (data_dir, 'http://localhost/archive.tar.gz')]


def test_half_precision(cifar10):
    cifar10.FLAGS.use_fp16 = True
    images, labels = cifar10.distorted_inputs()
    logits = cifar10.inference(images)
    loss = cifar10.loss(logits, labels)
    cifar10.train(loss, tf.train.get_or_create_global_step())
    assert {tensor.dtype for tensor in (images, labels, logits, loss)} == {tf.float16}


def test_the_constants_of_training(cifar10, monkeypatch):
    monkeypatch.setattr(train_lib, 'train', lambda *arguments: arguments)
    cifar10.FLAGS.batch_size = 100
    cifar10.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN, cifar10.NUM_EPOCHS_PER_DECAY = 250, 2.0
    cifar10.INITIAL_LEARNING_RATE, cifar10.LEARNING_RATE_DECAY_FACTOR = 0.5, 0.01
    cifar10.MOVING_AVERAGE_DECAY = 0.2
    hparams = dataclasses.replace(
        CLASSIC,
        initial_learning_rate=0.5,
        num_epochs_per_decay=2.0,
        learning_rate_decay_factor=0.01,
        moving_average_decay=0.2,
    )
    assert cifar10.train('loss', 'step') == ('loss', 'step', RunLength(100, 250), hparams)
