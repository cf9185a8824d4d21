"""The session loop and its hooks."""
import glob
import os
import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import hooks, training
from cifar10.cli import program as command_line
from cifar10.runs import checkpoint, run_directory
from cifar10.errors import UserError
from cifar10.hparams import BEST, CLASSIC, RECIPES
from cifar10.runs.machine import Threads
from tests.helpers.small_run import HPARAMS, LINE, assert_saved, numpy_run, scalars, train


def test_log_lines_checkpoints_and_summaries_bear_the_number_of_updates(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 5, log_frequency=2, summary_steps=2, checkpoint_steps=3)
    output = capsys.readouterr().out
    # The loss in a line is the one whose gradient made the update: that of the weights after one update fewer.
    losses = ['%.2f' % (numpy_run(step - 1)[0] ** 2).sum() for step in (2, 4, 5)]
    assert [line[:2] for line in LINE.findall(output)] == list(zip('245', losses))
    assert sorted(os.path.basename(path) for path in glob.glob(str(tmp_path / '*.index'))) == [
        'model.ckpt-3.index', 'model.ckpt-5.index']
    assert_saved(tmp_path, 3)
    assert_saved(tmp_path, 5)
    assert output.endswith('Saved %s\n' % (tmp_path / 'model.ckpt-5'))
    written = scalars(str(tmp_path))
    assert [(step, tag) for step, tag, _ in written if tag in ('loss', 'rate')] == [
        (2, 'loss'), (2, 'rate'), (4, 'loss'), (4, 'rate')]
    np.testing.assert_allclose([value for _, tag, value in written if tag == 'loss'],
                               [(numpy_run(step - 1)[0] ** 2).sum() for step in (2, 4)], rtol=1e-5)
    rates = {tag: [value for _, other, value in written if other == tag] for tag in ('examples_per_sec', 'sec_per_batch')}
    np.testing.assert_allclose(np.multiply(*rates.values()), [10, 10], rtol=1e-5)
    assert len(rates['sec_per_batch']) == 2 and min(rates['sec_per_batch']) > 0
    assert [(step, value) for step, tag, value in written if tag == 'epoch'] == [(2, np.float32(0.2)), (4, np.float32(0.4))]


def test_speed_counts_all_the_time_since_the_last_line(monkeypatch):
    clock = iter([100.0, 102.0, 110.0])
    monkeypatch.setattr(hooks.time, 'time', lambda: next(clock))
    speed = hooks.Speed(step=20, examples_per_step=256)
    assert speed.since_last(30) == (10 * 256 / 2, 0.2)
    assert speed.since_last(34) == (4 * 256 / 8, 2.0)


def test_logged_loss_is_the_mean_over_the_towers(tmp_path, data_dir, capsys):
    with run_directory.held(str(tmp_path), False, HPARAMS, 2, data_dir) as held:
        train_op = tf.assign_add(tf.train.get_or_create_global_step(), 1)
        towers = [[(tf.constant(0.0), None)]] * 2
        training.run(train_op, [tf.constant(1.0), tf.constant(4.0)], towers, tf.constant(0.1), tf.constant(b''), tf.train.Saver(),
                     held, training.Schedule(1), 10, 100, tf.ConfigProto())
    assert LINE.findall(capsys.readouterr().out)[0][:2] == ('1', '2.50')


def test_a_second_start_goes_on_from_the_very_state_that_was_saved(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 31, checkpoint_steps=1000, summary_steps=1)
    assert_saved(tmp_path, 31)
    capsys.readouterr()
    train(tmp_path, data_dir, 62, checkpoint_steps=1000, summary_steps=1)
    assert 'Going on from %s, step 31\n' % (tmp_path / 'model.ckpt-31') in capsys.readouterr().out
    assert_saved(tmp_path, 62)
    written = [(step, value) for step, tag, value in scalars(str(tmp_path)) if tag == 'rate']
    assert [step for step, _ in written] == list(range(1, 63))
    np.testing.assert_allclose([value for _, value in written], [numpy_run(step)[2] for step in range(62)], rtol=1e-5)


@pytest.mark.parametrize('recipe', sorted(RECIPES))
def test_a_recipe_resumed_in_the_middle_ends_as_if_never_interrupted(tmp_path, data_dir, recipe):
    """40 steps at once, and 17 and 23, of a matrix, which Muon makes orthogonal, and of biases."""
    hparams = RECIPES[recipe]._replace(epochs=4.0, warmup_epochs=1.0, num_epochs_per_decay=3.0)
    if hparams.moving_average_fraction:  # 0.02 of 40 steps is less than a step: the averages would be the weights
        hparams = hparams._replace(moving_average_fraction=0.2)
    initial = {'local3/weights': np.random.RandomState(0).randn(100, 64), 'local3/biases': np.ones(64)}
    train(tmp_path / 'once', data_dir, None, hparams=hparams, initial=initial)
    for max_steps in (17, None):
        train(tmp_path / 'twice', data_dir, max_steps, hparams=hparams, initial=initial)
    once, twice = [checkpoint.read(str(tmp_path / name / 'model.ckpt-40')).values for name in ('once', 'twice')]
    assert once.keys() == twice.keys() and len(once) == (5 if recipe == 'classic' else 7)
    assert all(np.abs(once[name] - value).max() > 1e-3 for name, value in initial.items())
    for name, value in once.items():
        np.testing.assert_array_equal(twice[name], value, err_msg=name)


def test_tensorboard_shows_no_overlap_after_a_run_that_was_killed(tmp_path, data_dir):
    from tensorboard.backend.event_processing import event_accumulator
    train(tmp_path, data_dir, 4, summary_steps=1, checkpoint_steps=4)
    with tf.Graph().as_default(), tf.summary.FileWriter(str(tmp_path), filename_suffix='.0.lost') as lost:
        for step in (5, 6, 7):
            lost.add_summary(tf.Summary(value=[tf.Summary.Value(tag='loss', simple_value=-1)]), step)
    train(tmp_path, data_dir, 6, summary_steps=1)
    accumulator = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    shown = accumulator.Scalars('loss')
    assert [point.step for point in shown] == [1, 2, 3, 4, 5, 6] and min(point.value for point in shown) > 0


def test_nothing_is_said_to_be_saved_where_no_step_was_made(tmp_path, data_dir, capsys, monkeypatch):
    monkeypatch.setattr(hooks.FillHook, 'after_create_session', lambda *unused: os.kill(os.getpid(), signal.SIGINT))
    train(tmp_path, data_dir, 3)
    assert capsys.readouterr().out == 'SIGINT: stopping\n'
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


NAMES = 'weights, weights/ExponentialMovingAverage'


@pytest.mark.parametrize('clean, losses, gradients, variables', [
    (None, '1', '1', NAMES), ('loss', 'none', '1', NAMES), ('gradient', '1', 'none', 'none')])
def test_a_loss_or_gradient_that_is_not_finite_stops_training(tmp_path, data_dir, clean, losses, gradients, variables):
    with pytest.raises(UserError) as error:
        train(tmp_path, data_dir, 50, poison=35, clean=clean, checkpoint_steps=20, summary_steps=5)
    assert str(error.value) == (
        'Training diverged at step 35 with learning rate 0.025. Not finite: losses of towers: %s; gradients of towers: %s; '
        'variables: %s. The last good checkpoint is %s' % (losses, gradients, variables, tmp_path / 'model.ckpt-20'))
    assert_saved(tmp_path, 20)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-20')


def test_variables_that_are_not_finite_are_not_saved(tmp_path, data_dir):
    """The first update overflows, which the loss would show only in the second step."""
    with pytest.raises(UserError, match=r'at step 1 with learning rate 1e.38. Not finite: losses of towers: none; gradients of towers: none; variables: weights,'):
        train(tmp_path, data_dir, 50, hparams=HPARAMS._replace(initial_learning_rate=1e38), checkpoint_steps=1)
    assert not glob.glob(str(tmp_path / 'model.ckpt-*'))


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_ends_the_run(tmp_path, data_dir, capsys, number):
    before = signal.getsignal(number)
    train(tmp_path, data_dir, 1000000, after_step=lambda step: os.kill(os.getpid(), number) if step == 7 else None)
    saved = tf.train.latest_checkpoint(str(tmp_path))
    step = int(saved.rsplit('-', 1)[1])
    assert 7 <= step <= 8
    assert_saved(tmp_path, step)
    assert '%s: stopping' % signal.Signals(number).name in capsys.readouterr().out
    assert signal.getsignal(number) == before


def test_ctrl_c_that_was_lost_while_the_graph_was_built_ends_the_run(tmp_path, data_dir, monkeypatch):
    interrupt = command_line._CtrlC()
    monkeypatch.setattr(signal, 'getsignal', {signal.SIGINT: interrupt}.get)
    train(tmp_path / 'before', data_dir, 1)
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / 'after', data_dir, 1)
    assert not glob.glob(str(tmp_path / 'after' / 'model.ckpt*'))


def test_a_checkpoint_that_cannot_be_saved(tmp_path, data_dir):
    def block(step):
        if step == 3:
            (tmp_path / 'model.ckpt-4.index').mkdir()
    with pytest.raises(UserError, match='Cannot save %s-4 .*give another --train_dir' % (tmp_path / 'model.ckpt')):
        train(tmp_path, data_dir, 50, after_step=block, checkpoint_steps=2)
    assert_saved(tmp_path, 2)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-2')
    assert not glob.glob(str(tmp_path / '*tempstate*'))


def test_the_plan(capsys, data_dir):
    training.print_plan(data_dir, ['/cpu:0', '/cpu:1'], Threads(1, 0, 3, 2), 50000, CLASSIC, 1000000, None)
    training.print_plan(data_dir, ['/cpu:0'], Threads(1, 2, 3, 4), 50000, CLASSIC, 200000, checkpoint.Checkpoint('x', 136719, {}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('Data: 50000 examples of disc, ring') and lines[0].endswith('in ' + data_dir)
    assert lines[1:9] == ['Devices: /cpu:0, /cpu:1',
                          'Threads: 1 within an operation, all for operations side by side, 3 for the input; slices a batch: 2',
                          'Batch: 128 examples a tower, 256 a step', 'Epoch: 50000 examples, 195.3 steps',
                          "Recipe: classic, the books' numbers",
                          'Learning rates: as they are (--lr_scaling=none) for 2 times the examples a step of the recipe',
                          'Learning rate: 0.1, next 0.01 from epoch 350 on (step 68360)',
                          'End: step 1000000, epoch 5120.0']
    assert lines[15:] == ['Learning rate: 0.01, next 0.001 from epoch 700 on (step 273438)', 'End: step 200000, epoch 512.0']
    assert not any('Learning rates' in line for line in lines[9:])
    training.print_plan(data_dir, ['/cpu:0'], Threads(1, 2, 3, 4), 50000, CLASSIC._replace(lr_scaling='linear'), 1, None)
    assert 'Learning rates: times 1 for 1 times the examples' in capsys.readouterr().out
    training.print_plan(data_dir, ['/cpu:0'], Threads(1, 2, 3, 4), 50000, BEST._replace(optimizer='momentum'), 1000000, None)
    assert ('Recipe: best, other than classic in optimizer momentum (gradient_descent), initial_learning_rate 0.05 (0.1), '
            'momentum 0.9, schedule linear (staircase), warmup_epochs 5.0, epochs 100.0 (inf), fc_weight_decay 0.0 (0.004), '
            'label_smoothing 0.1 (0.0), moving_average_fraction 0.02 (0.0), contrast 0.0 (0.8)\n') in capsys.readouterr().out
