"""The session loop and its hooks, on a graph of one variable whose every value is known."""
import glob
import json
import os
import re
import signal

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import checkpoint, dataset, directory, hooks, multi_gpu, optimizer, run_directory, training
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC

HPARAMS = CLASSIC._replace(initial_learning_rate=0.25, moving_average_decay=0.3, num_epochs_per_decay=3.0)


def events(directory):
    """All events of the directory's event files, in the order of the files."""
    paths = sorted(glob.glob(os.path.join(directory, 'events.*')), key=lambda path: path.split('tfevents.')[1])
    return [event for path in paths for event in tf.train.summary_iterator(path)]


def scalars(directory):
    """A list of (step, tag, value)."""
    return [(event.step, value.tag, value.simple_value) for event in events(directory) for value in event.summary.value]


def train(train_dir, data_dir, max_steps, fresh=False, poison=None, clean=None, after_step=None, hparams=HPARAMS,
          **schedule):
    """Halves a variable in each step; with 100 examples an epoch and 10 a step, the rate decays every 30 steps.

    Args:
      poison: the step in which loss and gradient of the second tower become NaN.
      clean: 'loss' or 'gradient' if only the other shows it.
      after_step: called with the step after each update.
    """
    with run_directory.held(str(train_dir), fresh, hparams, 2, data_dir) as held, tf.Graph().as_default():
        weights = tf.get_variable('weights', initializer=np.array([8.0, -4.0], np.float32))
        global_step = tf.train.get_or_create_global_step()
        rate = optimizer.learning_rate(global_step, 10, 100, hparams)
        loss = tf.reduce_sum(tf.square(weights))
        poisoned = loss * tf.where(tf.equal(global_step, -1 if poison is None else poison - 1), np.nan, 1.0)
        sgd = tf.train.GradientDescentOptimizer(rate)
        losses, tower_grads = [loss, poisoned], [sgd.compute_gradients(loss), sgd.compute_gradients(poisoned)]
        if clean == 'loss':
            losses = [loss, loss]
        if clean == 'gradient':
            tower_grads = tower_grads[:1]
        with tf.control_dependencies(losses):  # a loss that no gradient needs must not read the next step either
            train_op = optimizer.train(sgd, multi_gpu.average_gradients(tower_grads), global_step, hparams)
        if after_step:
            with tf.control_dependencies([train_op]):
                train_op = tf.py_func(after_step, [tf.identity(global_step)], [])
        summary_op = tf.summary.merge([tf.summary.scalar('loss', loss), tf.summary.scalar('rate', rate)])
        training.run(train_op, losses, tower_grads, rate, summary_op, tf.train.Saver(save_relative_paths=True), held,
                     training.Schedule(max_steps, **schedule), 10, tf.ConfigProto())


def numpy_run(steps):
    """The weights and their averages after so many steps, and the rate of the next one."""
    weights = average = np.array([8.0, -4.0])
    for step in range(1, steps + 1):
        weights = weights - 0.25 * 0.1 ** ((step - 1) * 10 // 300) * 2 * weights
        decay = min(0.3, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weights
    return weights, average, 0.25 * 0.1 ** (steps * 10 // 300)


def _assert_saved(train_dir, step):
    saved = checkpoint.read(os.path.join(str(train_dir), 'model.ckpt-%d' % step))
    weights, average, _ = numpy_run(step)
    assert saved.step == saved.values['global_step'] == step
    np.testing.assert_allclose(saved.values['weights'], weights, rtol=1e-5)
    np.testing.assert_allclose(saved.values['weights/ExponentialMovingAverage'], average, rtol=1e-5)


LINE = re.compile(r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: step (\d+), loss = (\S+) \((\d+\.\d) examples/sec; (\d+\.\d{3}) sec/batch\)$', re.M)


def test_log_lines_checkpoints_and_summaries_bear_the_number_of_updates(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 5, log_frequency=2, summary_steps=2, checkpoint_steps=3)
    output = capsys.readouterr().out
    # The loss in a line is the one whose gradient made the update: that of the weights after one update fewer.
    losses = ['%.2f' % (numpy_run(step - 1)[0] ** 2).sum() for step in (2, 4, 5)]
    assert [line[:2] for line in LINE.findall(output)] == list(zip('245', losses))
    assert sorted(os.path.basename(path) for path in glob.glob(str(tmp_path / '*.index'))) == [
        'model.ckpt-3.index', 'model.ckpt-5.index']
    _assert_saved(tmp_path, 3)
    _assert_saved(tmp_path, 5)
    assert output.endswith('Saved %s\n' % (tmp_path / 'model.ckpt-5'))
    written = scalars(str(tmp_path))
    assert [(step, tag) for step, tag, _ in written if tag != 'examples_per_sec'] == [
        (2, 'loss'), (2, 'rate'), (4, 'loss'), (4, 'rate')]
    np.testing.assert_allclose([value for _, tag, value in written if tag == 'loss'],
                               [(numpy_run(step - 1)[0] ** 2).sum() for step in (2, 4)], rtol=1e-5)
    assert all(value > 0 for _, tag, value in written if tag == 'examples_per_sec')


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
                     held, training.Schedule(1), 10, tf.ConfigProto())
    assert LINE.findall(capsys.readouterr().out)[0][:2] == ('1', '2.50')


def test_a_second_start_goes_on_from_the_very_state_that_was_saved(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 31, checkpoint_steps=1000, summary_steps=1)
    _assert_saved(tmp_path, 31)
    capsys.readouterr()
    train(tmp_path, data_dir, 62, checkpoint_steps=1000, summary_steps=1)
    assert 'Going on from %s, step 31\n' % (tmp_path / 'model.ckpt-31') in capsys.readouterr().out
    _assert_saved(tmp_path, 62)
    written = [(step, value) for step, tag, value in scalars(str(tmp_path)) if tag == 'rate']
    assert [step for step, _ in written] == list(range(1, 63))
    np.testing.assert_allclose([value for _, value in written], [numpy_run(step)[2] for step in range(62)], rtol=1e-5)


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


def test_nothing_is_done_when_all_steps_are_there(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 3)
    before = {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))}
    train(tmp_path, data_dir, 3)
    assert 'Nothing to do: --max_steps is 3' in capsys.readouterr().out
    assert {path: os.stat(path).st_mtime_ns for path in glob.glob(str(tmp_path / '*'))} == before


def test_max_to_keep_counts_over_starts(tmp_path, data_dir):
    for steps in range(1, 9):
        train(tmp_path, data_dir, steps)
    assert len(glob.glob(str(tmp_path / '*.index'))) == 5


def test_fresh_moves_the_old_run_aside(tmp_path, data_dir, capsys):
    train(tmp_path / 'run', data_dir, 3)
    train(str(tmp_path / 'run') + '/', data_dir, 2, fresh=True)
    _assert_saved(tmp_path / 'run', 2)
    aside, = glob.glob(str(tmp_path / 'run.*'))
    assert 'Moved the run in %s to %s' % (tmp_path / 'run', aside) in capsys.readouterr().out
    train(aside, data_dir, 4)  # what was moved goes on by itself
    _assert_saved(aside, 4)
    assert tf.train.latest_checkpoint(str(tmp_path / 'run')).endswith('run/model.ckpt-2')


def test_fresh_in_the_working_directory(tmp_path, data_dir, monkeypatch):
    train(tmp_path / 'run', data_dir, 3)
    monkeypatch.chdir(tmp_path / 'run')
    train('.', data_dir, 2, fresh=True)
    _assert_saved(tmp_path / 'run', 2)


def test_nothing_is_said_to_be_saved_where_no_step_was_made(tmp_path, data_dir, capsys, monkeypatch):
    monkeypatch.setattr(hooks.FillHook, 'after_create_session', lambda *unused: os.kill(os.getpid(), signal.SIGINT))
    train(tmp_path, data_dir, 3)
    assert capsys.readouterr().out == 'SIGINT: stopping\n'
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_a_moved_directory_is_not_locked_in_its_new_place(tmp_path, monkeypatch):
    (tmp_path / 'run').mkdir()
    flock = directory.fcntl.flock

    def move_and_lock(handle, operation):
        (tmp_path / 'run').rename(tmp_path / 'aside')
        (tmp_path / 'run').mkdir()
        return flock(handle, operation)
    monkeypatch.setattr(directory.fcntl, 'flock', move_and_lock)
    with pytest.raises(UserError, match='has just been moved'):
        with directory.locked(str(tmp_path / 'run')):
            pass


def test_fresh_does_not_move_the_data(tmp_path, own_data_dir):
    train(tmp_path, own_data_dir, 1)
    with pytest.raises(UserError, match='--fresh would move the data in %s' % own_data_dir):
        train(tmp_path, own_data_dir, 1, fresh=True)
    _assert_saved(tmp_path, 1)


@pytest.mark.parametrize('fresh', [False, True])
def test_a_directory_in_which_another_process_trains_is_left_alone(tmp_path, data_dir, fresh):
    train(tmp_path, data_dir, 1)
    with directory.locked(str(tmp_path)), pytest.raises(UserError, match='Another process is training in %s' % tmp_path):
        train(tmp_path, data_dir, 2, fresh=fresh)
    _assert_saved(tmp_path, 1)


def test_fresh_leaves_a_directory_without_a_run_alone(tmp_path, data_dir):
    (tmp_path / 'letters.txt').write_text('dear')
    train(tmp_path, data_dir, 1, fresh=True)
    assert (tmp_path / 'letters.txt').exists()


NAMES = 'weights, weights/ExponentialMovingAverage'


@pytest.mark.parametrize('clean, losses, gradients, variables', [
    (None, '1', '1', NAMES), ('loss', 'none', '1', NAMES), ('gradient', '1', 'none', 'none')])
def test_a_loss_or_gradient_that_is_not_finite_stops_training(tmp_path, data_dir, clean, losses, gradients, variables):
    with pytest.raises(UserError) as error:
        train(tmp_path, data_dir, 50, poison=35, clean=clean, checkpoint_steps=20, summary_steps=5)
    assert str(error.value) == (
        'Training diverged at step 35 with learning rate 0.025. Not finite: losses of towers: %s; gradients of towers: %s; '
        'variables: %s. The last good checkpoint is %s' % (losses, gradients, variables, tmp_path / 'model.ckpt-20'))
    _assert_saved(tmp_path, 20)
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
    _assert_saved(tmp_path, step)
    assert '%s: stopping' % signal.Signals(number).name in capsys.readouterr().out
    assert signal.getsignal(number) == before


def test_a_run_on_other_data_is_not_gone_on_with(tmp_path, data_dir, own_data_dir):
    train(tmp_path / 'run', data_dir, 1)
    with open(os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE), 'w') as names:
        names.write('\n'.join(dataset.CLASS_NAMES))
    with pytest.raises(UserError, match='is on a data set with other classes .disc, ring'):
        train(tmp_path / 'run', own_data_dir, 2)
    _assert_saved(tmp_path / 'run', 1)


def test_a_run_with_another_batch_says_so(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    capsys.readouterr()
    train(tmp_path, data_dir, 2, hparams=HPARAMS._replace(batch_size=64))
    assert 'batch_size was 128, is 64. Its steps so far count' in capsys.readouterr().out
    record = json.load(open(str(tmp_path / 'run.json')))
    assert (record['batch_size'], record['num_towers'], record['class_names'][0]) == (64, 2, 'disc')


@pytest.mark.parametrize('content', ['', '[]', '{}', '{"class_names": [1, 2]}'])
def test_a_damaged_record_is_named(tmp_path, data_dir, content):
    train(tmp_path, data_dir, 1)
    (tmp_path / 'run.json').write_text(content)
    with pytest.raises(UserError, match='%s is damaged' % (tmp_path / 'run.json')):
        train(tmp_path, data_dir, 2)


def test_a_checkpoint_that_cannot_be_saved(tmp_path, data_dir):
    def block(step):
        if step == 3:
            (tmp_path / 'model.ckpt-4.index').mkdir()
    with pytest.raises(UserError, match='Cannot save %s-4 .*give another --train_dir' % (tmp_path / 'model.ckpt')):
        train(tmp_path, data_dir, 50, after_step=block, checkpoint_steps=2)
    _assert_saved(tmp_path, 2)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith('model.ckpt-2')
    assert not glob.glob(str(tmp_path / '*tempstate*'))


def _damage_index(train_dir):
    os.remove(os.path.join(train_dir, 'model.ckpt-2.index'))


def _damage_data(train_dir):
    path = os.path.join(train_dir, 'model.ckpt-2.data-00000-of-00001')
    content = bytearray(open(path, 'rb').read())
    content[0] ^= 255
    open(path, 'wb').write(content)


def _cut_data(train_dir):
    os.truncate(os.path.join(train_dir, 'model.ckpt-2.data-00000-of-00001'), 5)


def _remove_state(train_dir):
    os.remove(os.path.join(train_dir, 'checkpoint'))


def _empty_state(train_dir):
    open(os.path.join(train_dir, 'checkpoint'), 'w').close()


@pytest.mark.parametrize('damage, complaint', [
    (_damage_index, 'model.ckpt-2 is missing, though'), (_damage_data, 'model.ckpt-2 is damaged'),
    (_cut_data, 'model.ckpt-2 is damaged'), (_remove_state, 'holds checkpoints, but not the file "checkpoint"'),
    (_empty_state, 'checkpoint is damaged: it must name')])
def test_a_bad_checkpoint_is_named_and_nothing_is_overwritten(tmp_path, data_dir, damage, complaint):
    train(tmp_path, data_dir, 2)
    damage(str(tmp_path))
    before = {path: open(path, 'rb').read() for path in glob.glob(str(tmp_path / '*'))}
    with pytest.raises(UserError, match=complaint) as error:
        train(tmp_path, data_dir, 3)
    assert '\n' not in str(error.value)
    assert {path: open(path, 'rb').read() for path in glob.glob(str(tmp_path / '*'))} == before


def test_a_checkpoint_of_another_network_is_refused(tmp_path, data_dir):
    for shape, dtype, complaint in [([3], tf.float32, r'its weights is float32 \[3\], not float32 \[2\]'),
                                    ([2], tf.float64, r'its weights is float64 \[2\]'), (None, None, 'it has no weights')]:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.train.get_or_create_global_step()
            if shape:
                tf.get_variable('weights', shape, dtype)
                tf.get_variable('weights/ExponentialMovingAverage', [2])
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 1)
        before = sorted(os.listdir(str(tmp_path)))
        with pytest.raises(UserError, match='does not fit: ' + complaint):
            train(tmp_path, data_dir, 3)
        assert sorted(os.listdir(str(tmp_path))) == before


def test_the_plan(capsys, data_dir):
    training.print_plan(data_dir, ['/cpu:0', '/cpu:1'], 50000, CLASSIC, None)
    training.print_plan(data_dir, ['/cpu:0'], 50000, CLASSIC, checkpoint.Checkpoint('x', 136719, {}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('Data: 50000 examples of disc, ring') and lines[0].endswith('in ' + data_dir)
    assert lines[1:5] == ['Devices: /cpu:0, /cpu:1', 'Batch: 128 examples a tower, 256 a step', 'Epoch: 50000 examples, 195.3 steps',
                          'Learning rate: 0.1, next 0.01 from epoch 350 on (step 68360)']
    assert lines[9] == 'Learning rate: 0.01, next 0.001 from epoch 700 on (step 273438)'
