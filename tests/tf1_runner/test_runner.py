"""Unchanged programs in the styles of books and tutorials, each in its own process.

The process is a fork, except where the end of Python matters."""

import os
import re
import shutil
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import events, oracle, programs

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
FILLING = (
    'Filling queue with 120 CIFAR images before starting to train. This will take a few minutes.\n'
)

pytestmark = pytest.mark.slow


@pytest.fixture
def own(tmp_path):
    """own(name): path of a program in its own directory."""
    return lambda name: shutil.copy(os.path.join(PROGRAMS, name + '.py'), str(tmp_path))


def _succeed(*args):
    status, stdout, stderr = programs.run('cifar10_run', *args)
    assert status == 0, stderr
    return stdout, stderr


def test_an_own_network_on_the_input(own, data_dir):
    """The labels have the order of the file, and start again at its end."""
    stdout, stderr = _succeed(own('own_network'), os.path.join(data_dir, dataset.CIFAR10_DIRECTORY))
    assert stderr == ''
    assert stdout.startswith(FILLING)
    assert re.findall(r'step (\d+), loss = [2-9]', stdout) == ['0', '10']
    labels, _ = oracle.read_records(dataset.read(data_dir).test.paths)
    seen = [int(label) for label in re.search('labels (.*)', stdout).group(1).split()]
    np.testing.assert_array_equal(seen, np.concatenate([labels, labels])[:64])
    assert re.search(r'precision @ 1 = [01]\.\d{3} of 64', stdout)


def test_the_tutorial_trains_and_evaluates(own, tmp_path, data_dir):
    """data_dir: first the parent of cifar-10-batches-bin, then the directory itself."""
    flags = ['--data_dir=' + data_dir, '--batch_size=25']
    train_dir = str(tmp_path / 'train')
    unknown = ['--max-step=3', '--max-step=4']
    stdout, stderr = _succeed(
        own('train_flags'), '--train_dir=' + train_dir, '--max_steps=5', *unknown, *flags
    )
    assert stderr.count('ignores') == stderr.count('ignores --max-step: ') == 1
    assert re.findall(r'step (\d+), loss = [345]\.\d\d \(batches of 25\)', stdout) == list('024')
    assert stderr.count('Saving checkpoints for 5') == 1
    assert 'deprecated' not in stderr and 'Traceback' not in stderr
    names = checkpoint.read(train_dir + '/model.ckpt-5').values
    assert {'conv1/weights/ExponentialMovingAverage', 'total_loss/avg', 'global_step'} <= set(names)
    tags = {tag for _, tag, _ in events.scalars(train_dir)}
    assert {'total_loss_1', 'learning_rate', 'conv1/conv1/sparsity', 'images/image/0'} <= tags
    stdout, _ = _succeed(
        own('evaluate'),
        '--checkpoint_dir=' + train_dir,
        f'--eval_dir={tmp_path / "eval"}',
        '--num_examples=50',
        '--data_dir=' + os.path.join(data_dir, dataset.CIFAR10_DIRECTORY),
        '--batch_size=25',
    )
    evaluator = evaluation.Evaluator(dataset.read(data_dir).test)
    result = evaluator.evaluate(checkpoint.read(train_dir + '/model.ckpt-5'))
    assert f'({result.metrics.num_correct} of 50)' in stdout


def test_towers_on_gpus_that_are_not_there_and_the_other_kind_of_flags(own, tmp_path, data_dir):
    stdout, stderr = _succeed(
        own('multi_gpu_argparse'),
        '--num_gpus=2',
        '--max_steps=2',
        '--batch_size',
        '10',
        '--data_dir=' + data_dir,
        f'--train_dir={tmp_path / "train"}',
    )
    lines = re.findall(r'step (\d), loss = [3-9]\.\d\d, images \(10, 24, 24, 3\)', stdout)
    assert lines == ['0', '1']
    assert 'Traceback' not in stderr and 'ignores' not in stderr
    # Both towers cause one line.
    assert re.findall('No GPU found: (.*) means /cpu:0', stderr) == ['/gpu:0']
    reader = tf.train.load_checkpoint(str(tmp_path / 'train' / 'model.ckpt-1'))
    assert reader.get_tensor('global_step') == 2


def test_names_and_orders_before_version_1(own, tmp_path, data_dir):
    """The program sets constants and a flag."""
    stdout, stderr = _succeed(
        own('before_1_0'), '--data_dir=' + data_dir, f'--train_dir={tmp_path / "train"}'
    )
    assert stdout.count('Filling queue with 120 CIFAR images') == 2
    lines = re.findall(r'step (\d), .* images \(8, 32, 32, 3\), logits \(8, 12\)', stdout)
    assert lines == ['0', '1', '2'] and 'Traceback' not in stderr
    names = dict(tf.train.list_variables(str(tmp_path / 'train' / 'model.ckpt-2')))
    assert names['softmax_linear/weights'] == [192, 12] and 'tower_1/total_loss_1/avg' in names


def test_names_and_arguments_before_version_1_have_the_values_of_numpy(own):
    assert _succeed(own('old_arguments'))[0] == '22 as NumPy\n'


def test_helpers_half_precision_and_a_changed_record(own, data_dir):
    path = dataset.read(data_dir).train.paths[0]
    stdout, _ = _succeed(own('own_layers'), path, '--data_dir=' + data_dir)
    _, images = oracle.read_records([path])
    assert f'batch (6, 20, 32, 3), labels (6,), first byte {images[:6, :20].min()}' in stdout


def test_the_end_of_a_program(tmp_path, data_dir):
    """Threads, functions of atexit and queues keep their session, which is closed at last.

    The path of the program is a link; the program changes the directory.
    """
    (tmp_path / 'own').mkdir()
    (tmp_path / 'own' / 'helper.py').write_text('NUMBER = 5\n')
    (tmp_path / 'own' / 'ends.py').write_text(
        'import atexit, os, sys, threading, cifar10_input, tensorflow as tf\n'
        'from helper import NUMBER\n'
        'os.chdir("/")\n'
        'assert os.path.isfile(__file__), __file__\n'
        'images, _ = cifar10_input.distorted_inputs(sys.argv[1], 128)\n'
        'sess = tf.InteractiveSession(config=tf.ConfigProto(device_count={"CPU": 3}))\n'
        'assert len([d for d in sess.list_devices() if d.device_type == "CPU"]) == 3\n'
        'x = tf.constant(NUMBER)\n'
        'def work():\n'
        '    threading.main_thread().join()\n'
        '    print("thread", sess.run(x))\n'
        'threading.Thread(target=work).start()\n'
        'atexit.register(lambda: print("end", sess.run(x)))\n'
        'queue = tf.FIFOQueue(5, tf.int32, [])\n'
        'enqueue, value = queue.enqueue_many([[1, 2, 3]]), queue.dequeue()\n'
        'def feed():\n'
        '    try:\n'
        '        while True:\n'
        '            sess.run(enqueue)\n'
        '    finally:\n'
        '        print("closed")\n'
        'threading.Thread(target=feed, daemon=True).start()\n'
        'tf.train.start_queue_runners()\n'
        'print(sess.run(images).shape, [sess.run(value) for _ in range(4)])\n'
        'sys.exit(3)\n'
    )
    (tmp_path / 'link.py').symlink_to(tmp_path / 'own' / 'ends.py')
    found = programs.run(
        'cifar10_run', str(tmp_path / 'link.py'), data_dir, wrapper=programs.AS_A_USER
    )
    assert found[:2] == (3, FILLING + '(128, 24, 24, 3) [1, 2, 3, 1]\nthread 5\nend 5\nclosed\n')
    if sys.version_info >= (3, 8):  # Python 3.7 prints the error of a thread
        assert found[2] == ''


def test_its_own_hook_shows_an_error_and_its_own_flags_are_its_own(tmp_path):
    """The flags resemble those of the runner."""
    (tmp_path / 'hook.py').write_text(
        'import sys\n'
        'sys.excepthook = lambda kind, error, frames: print(kind.__name__, error, frames.tb_lineno)\n'
        'class Stop(BaseException): pass\n'
        'raise Stop(sys.argv[1:])\n'
    )
    found = programs.run('cifar10_run', str(tmp_path / 'hook.py'), '--own', '--own=3', '--version')
    assert found == (1, "Stop ['--own', '--own=3', '--version'] 4\n", '')


def test_names_of_version_1_and_former_places_of_the_modules(own, tmp_path):
    (tmp_path / 'scipy').mkdir()
    (tmp_path / 'scipy' / '__init__.py').write_text('')
    stdout, stderr = _succeed(own('names'), 'their', 'argument')
    assert stdout == 'all names are there\n'
    stderr, count = re.subn('names.py: No GPU found: /gpu:3 means /cpu:0 .*\n', '', stderr)
    assert count == 1
    # TensorFlow 1.15 also warns about tf.contrib.
    warning = 'WARNING:tensorflow:A warning of the program\n'
    assert stderr.endswith(warning) and (
        stderr == warning or 'The TensorFlow contrib module' in stderr
    )
