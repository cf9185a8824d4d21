"""A run that starts from the weights of another one, with other classes."""

import json
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import conversion
from tests.helpers import data_sets, faults, pictures, programs

pytestmark = pytest.mark.slow
AVERAGE = '/ExponentialMovingAverage'
HIDDEN_LAYERS = ['conv1', 'conv2', 'local3', 'local4']
FLAGS = ['--batch_size=8', '--eval_every=0', '--recipe=fast', '--epochs=100']


@pytest.fixture(scope='module')
def top(tmp_path_factory):
    """A directory with a run of ten classes, and data sets of ten and three classes."""
    top = tmp_path_factory.mktemp('top')
    data_sets.write(top / 'ten')
    folders = pictures.write(top / 'photos', ['a', 'b', 'c'], 20)
    conversion.convert(folders, str(top / 'three'), lambda line: None)
    programs.succeed(
        'cifar10_train',
        f'--data_dir={top}/ten',
        f'--train_dir={top}/ten_run',
        '--max_steps=3',
        *FLAGS,
    )
    return top


def start(top, train_dir, *more, script='cifar10_train', data='three'):
    """Start from the run of ten classes; return stdout."""
    return programs.succeed(
        script,
        f'--data_dir={top}/{data}',
        f'--train_dir={train_dir}',
        f'--init_checkpoint={top}/ten_run',
        '--max_steps=1',
        *FLAGS,
        *more,
    )


def assert_initial_values(train_dir, top, new=('softmax_linear',)):
    """The first checkpoint has the moving averages of the other run, twice: as weights too."""
    source = tf.train.load_checkpoint(str(top / 'ten_run' / 'model.ckpt-3'))
    found = tf.train.load_checkpoint(str(train_dir / 'model.ckpt-0'))
    assert found.get_tensor('global_step') == 0
    for layer in [*HIDDEN_LAYERS, 'softmax_linear']:
        for name in (f'{layer}/weights', f'{layer}/biases'):
            value = found.get_tensor(name)
            np.testing.assert_array_equal(value, found.get_tensor(name + AVERAGE))
            if layer in new:
                assert value.shape[-1] == 3
            else:
                np.testing.assert_array_equal(value, source.get_tensor(name + AVERAGE))
    weights = [source.get_tensor('conv1/weights' + suffix) for suffix in ('', AVERAGE)]
    assert (weights[0] != weights[1]).any()  # else the test would not see which of them is used


def test_other_classes(top, tmp_path):
    stdout = start(top, tmp_path / 'run')
    (line,) = re.findall('(?m)^Initial weights: .*', stdout)
    names = ', '.join(
        f'{layer}/{kind}' for layer in HIDDEN_LAYERS for kind in ('weights', 'biases')
    )
    assert line == (
        f'Initial weights: {names} from {top}/ten_run/model.ckpt-3; '
        'new: softmax_linear/weights, softmax_linear/biases'
    )
    assert_initial_values(tmp_path / 'run', top)
    record = json.loads((tmp_path / 'run' / 'run.json').read_text())
    assert record['init_checkpoint'] == f'{top}/ten_run/model.ckpt-3'


def test_the_resumed_run_keeps_its_weights(top, tmp_path):
    """The source may be gone."""
    start(top, tmp_path / 'run')
    flags = [f'--data_dir={top}/three', f'--train_dir={tmp_path}/run', '--init_checkpoint=/gone']
    stdout = programs.succeed('cifar10_train', *flags, '--max_steps=2', *FLAGS)
    assert 'Initial weights: those of the resumed run, not of --init_checkpoint\n' in stdout
    record = json.loads((tmp_path / 'run' / 'run.json').read_text())
    assert record['init_checkpoint'] == f'{top}/ten_run/model.ckpt-3'


def test_the_same_classes_in_two_towers(top, tmp_path):
    """A checkpoint can be named by one of its files."""
    more = ['--num_gpus=2', f'--init_checkpoint={top}/ten_run/model.ckpt-3.index']
    script = 'cifar10_multi_gpu_train'
    stdout = start(top, tmp_path / 'run', *more, script=script, data='ten')
    assert '/ten_run/model.ckpt-3; new: none\n' in stdout
    assert_initial_values(tmp_path / 'run', top, new=())


@pytest.mark.parametrize('num_ps, mode', [(0, 'allreduce'), (1, 'sync'), (1, 'average')])
def test_a_cluster(top, tmp_path, num_ps, mode):
    more = [f'--data_dir={top}/three', f'--train_dir={tmp_path}/run', f'--mode={mode}']
    more += [f'--init_checkpoint={top}/ten_run', '--max_steps=2', *FLAGS]
    status, stdout, stderr = programs.run(
        'cifar10_launch', f'--num_ps={num_ps}', '--num_workers=2', '--', *more
    )
    assert status == 0 and 'Initial weights: conv1/weights' in stdout, stderr
    assert_initial_values(tmp_path / 'run', top)


def _save(directory, values):
    """Save a checkpoint as a program does; return its path."""
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in values.items():
            tf.get_variable(name, initializer=value)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(directory / 'model.ckpt'), 7)


@pytest.mark.parametrize(
    'value', [np.zeros([3, 3, 3, 64], np.float32), np.zeros([5, 5, 3, 64], np.float64)]
)
def test_a_checkpoint_of_another_network(top, tmp_path, value):
    path = _save(tmp_path / 'other', {'conv1/weights': value})
    flags = [f'--data_dir={top}/three', f'--train_dir={tmp_path}/run', f'--init_checkpoint={path}']
    status, _, stderr = programs.call('cifar10_train', *flags)
    assert status == 1
    faults.assert_one_line(
        stderr, f'No value in {path} fits the network: give another --init_checkpoint or --network'
    )


def test_moving_averages_of_some_variables(top, tmp_path):
    """The others start with their values. The notes are printed."""
    values = {
        'conv1/biases': np.full(64, 3, np.float32),
        'conv2/biases': np.full(64, 4, np.float32),
    }
    values['conv2/biases' + AVERAGE] = np.full(64, 5, np.float32)
    path = _save(tmp_path / 'other', values)
    stdout = start(top, tmp_path / 'run', f'--init_checkpoint={path}')
    assert f'Initial weights: conv1/biases, conv2/biases from {path}; new: ' in stdout
    found = tf.train.load_checkpoint(str(tmp_path / 'run' / 'model.ckpt-0'))
    assert found.get_tensor('conv1/biases').tolist() == [3] * 64
    assert found.get_tensor('conv2/biases').tolist() == [5] * 64
    path = _save(tmp_path / 'weights', {'conv1/biases': values['conv1/biases']})
    stdout = start(top, tmp_path / 'run2', f'--init_checkpoint={path}')
    assert f'{path} has no moving averages: using the weights\n' in stdout


def test_a_wrong_path_does_not_move_the_run_aside(top, tmp_path):
    start(top, tmp_path / 'run')
    before = sorted(path.name for path in (tmp_path / 'run').iterdir())
    flags = [f'--data_dir={top}/three', f'--train_dir={tmp_path}/run', '--fresh', *FLAGS]
    status, _, stderr = programs.call('cifar10_train', '--init_checkpoint=best', *flags)
    assert status == 1
    faults.assert_one_line(stderr, '/best is missing: give the directory of a run, or')
    assert sorted(path.name for path in (tmp_path / 'run').iterdir()) == before
    assert [path.name for path in tmp_path.iterdir()] == ['run']
