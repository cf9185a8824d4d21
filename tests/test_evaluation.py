"""Every example once, the moving averages, each checkpoint once."""
import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.errors import UserError
from cifar10.hparams import FAST
from tests.helpers import oracle
from tests.helpers.small_run import events


def save_checkpoint(directory, step, averages=True, global_step=True, seed=0, poison=None):
    """Saves a checkpoint of the network with random weights; returns its path and what each variable evaluates as.

    The raw weights are others than the averages, so that it shows which are used.
    """
    rng = np.random.RandomState(seed)
    with tf.Graph().as_default(), tf.Session() as session:
        cifar10.inference(tf.zeros([1, 24, 24, 3]))
        variables = tf.trainable_variables()
        if averages:
            tf.train.ExponentialMovingAverage(0.9).apply(variables)
        if global_step:
            tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        used = {}
        for variable in tf.global_variables():
            if variable.op.name == 'global_step':
                variable.load(step, session)
                continue
            value = rng.normal(0, 0.1, variable.shape.as_list()).astype(np.float32)
            if variable.op.name == poison:
                value.flat[3] = np.nan
            variable.load(value, session)
            if variable.op.name.endswith('/ExponentialMovingAverage') == averages:
                used[variable.op.name.replace('/ExponentialMovingAverage', '')] = value
        return tf.train.Saver().save(session, os.path.join(str(directory), 'model.ckpt'), step), used


def expected_result(data_dir, variables, num_examples=None, paths=None):
    """Number correct and mean cross entropy, by NumPy."""
    labels, images = oracle.read_records(paths or dataset.test_files(data_dir))
    with tf.Graph().as_default(), tf.Session() as session:
        images = session.run(tf.map_fn(oracle.evaluation_image, images, tf.float32))
    labels, images = labels[:num_examples], images[:num_examples]
    logits = oracle.logits(images, variables)
    return (logits.argmax(1) == labels).sum(), oracle.cross_entropies(logits, labels).mean()


def _evaluator(data_dir, eval_data='test', num_examples=None, num_views=1):
    return evaluation.Evaluator(data_dir, eval_data, num_examples, num_views, '/cpu:0', tf.ConfigProto())


@pytest.mark.parametrize('num_examples', [None, 1, 30])
def test_averages_are_scored_on_every_example_once(tmp_path, data_dir, num_examples):
    path, variables = save_checkpoint(tmp_path, 7)
    result = _evaluator(data_dir, num_examples=num_examples).evaluate(checkpoint.read(path))
    correct, cross_entropy = expected_result(data_dir, variables, num_examples)
    assert (result.step, result.num_correct, result.num_examples) == (7, correct, num_examples or 50)
    np.testing.assert_allclose(result.losses['losses/cross_entropy'], cross_entropy, rtol=1e-4)
    decays = {'losses/%s/weight_loss' % layer: 0.004 * (variables[layer + '/weights'].astype(float) ** 2).sum() / 2
              for layer in ('local3', 'local4')}
    for name, value in decays.items():
        np.testing.assert_allclose(result.losses[name], value, rtol=1e-4)
    np.testing.assert_allclose(result.losses['total_loss'], cross_entropy + sum(decays.values()), rtol=1e-4)


def test_a_batch_that_does_not_divide(tmp_path, own_data_dir):
    """300 training examples are two batches of 128 and one of 44."""
    path, variables = save_checkpoint(tmp_path, 1)
    result = _evaluator(own_data_dir, 'train_eval').evaluate(checkpoint.read(path))
    correct, cross_entropy = expected_result(own_data_dir, variables, paths=dataset.train_files(own_data_dir))
    assert (result.num_correct, result.num_examples) == (correct, 300)
    np.testing.assert_allclose(result.losses['losses/cross_entropy'], cross_entropy, rtol=1e-4)


def test_raw_weights_where_there_are_no_averages(tmp_path, data_dir, capsys):
    path, variables = save_checkpoint(tmp_path, 3, averages=False, global_step=False)
    result = _evaluator(data_dir).evaluate(checkpoint.read(path))
    assert (result.step, result.num_correct) == (3, expected_result(data_dir, variables)[0])
    assert '%s has no moving averages: evaluating the weights themselves' % path in capsys.readouterr().out


def test_one_graph_serves_many_checkpoints(tmp_path, data_dir):
    evaluator = _evaluator(data_dir)
    for step in (1, 2):
        path, variables = save_checkpoint(tmp_path, step, seed=step)
        assert evaluator.evaluate(checkpoint.read(path)).num_correct == expected_result(data_dir, variables)[0]


def test_a_checkpoint_that_is_not_finite_is_refused(tmp_path, data_dir):
    path, _ = save_checkpoint(tmp_path, 1, poison='local4/biases/ExponentialMovingAverage')
    with pytest.raises(UserError, match='local4/biases/ExponentialMovingAverage is not finite'):
        _evaluator(data_dir).evaluate(checkpoint.read(path))


def test_a_checkpoint_of_another_network_is_refused(tmp_path, data_dir):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable('conv1/biases', [32])
        session.run(variable.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 1)
    with pytest.raises(UserError, match=r'does not fit: its conv1/biases is float32 \[32\], not float32 \[64\]'):
        _evaluator(data_dir).evaluate(checkpoint.read(path))


def test_the_weight_decay_of_the_run_is_among_the_losses(tmp_path, data_dir):
    """Of each checkpoint, for another run may come to the directory."""
    evaluator = _evaluator(data_dir, num_examples=1)
    for decay in (0.5, 0.0):
        (tmp_path / 'run.json').write_text(json.dumps(dict(
            FAST._replace(fc_weight_decay=decay)._asdict(), num_towers=1, class_names=None)))
        path, variables = save_checkpoint(tmp_path, 1)
        losses = evaluator.evaluate(checkpoint.read(path)).losses
        expected = decay * (variables['local3/weights'].astype(float) ** 2).sum() / 2
        np.testing.assert_allclose(losses['losses/local3/weight_loss'], expected, rtol=1e-4)
        np.testing.assert_allclose(losses['total_loss'], sum(losses.values()) - losses['total_loss'], rtol=1e-6)


def test_prints_and_writes_the_precision(tmp_path, data_dir, capsys):
    path, variables = save_checkpoint(tmp_path / 'train', 12)
    evaluation.evaluate(_evaluator(data_dir), [checkpoint.read(path)], str(tmp_path / 'eval'))
    correct, _ = expected_result(data_dir, variables)
    assert capsys.readouterr().out[26:] == ': precision @ 1 = %.3f (%d of 50, step 12)\n' % (correct / 50, correct)
    written = {value.tag: (event.step, value.simple_value) for event in events(str(tmp_path / 'eval'))
               for value in event.summary.value}
    assert written['Precision @ 1'] == (12, pytest.approx(correct / 50))
    assert set(written) == {'Precision @ 1', 'total_loss', 'losses/cross_entropy', 'losses/local3/weight_loss',
                            'losses/local4/weight_loss'}
    assert {step for step, _ in written.values()} == {12}


class _Clock:
    """Stands in for the module time: sleeping passes no time but the clock's own, and makes what is due happen."""

    def __init__(self):
        self.now = 0
        self.due = {}  # what happens, by time

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        for time in sorted(time for time in self.due if time <= self.now):
            self.due.pop(time)()


def test_each_checkpoint_is_found_once_until_none_is_new(tmp_path, monkeypatch, capsys):
    clock = _Clock()
    monkeypatch.setattr(evaluation, 'time', clock)

    def save(step):
        return lambda: os.utime(save_checkpoint(tmp_path, step)[0] + '.index', (clock.now, clock.now))
    # The last one is of a run that was started anew and came to the same step.
    clock.due = {25: save(10), 45: save(20), 46: save(30), 75: save(30)}
    found = [(restored.step, clock.now) for restored in evaluation.new_checkpoints(str(tmp_path), 10, 50)]
    assert found == [(10, 30), (30, 50), (30, 80)]
    assert clock.now == 130  # 50 seconds after the last
    output = capsys.readouterr().out
    assert output.count('Waiting for a checkpoint in %s\n' % tmp_path) == 3
    assert output.endswith('No new checkpoint in %s for 50 seconds\n' % tmp_path)


def test_a_checkpoint_that_the_trainer_replaces_meanwhile_is_passed_over(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, 1)
    read = checkpoint.read

    def replace_and_read(path):
        if path.endswith('-1'):
            save_checkpoint(tmp_path, 2)
            os.remove(path + '.index')
        return read(path)
    monkeypatch.setattr(checkpoint, 'read', replace_and_read)
    assert [restored.step for restored in evaluation.new_checkpoints(str(tmp_path), 1, 0)] == [2]


def test_a_damaged_checkpoint_ends_the_wait(tmp_path):
    path, _ = save_checkpoint(tmp_path, 1)
    os.truncate(path + '.data-00000-of-00001', 10)
    with pytest.raises(UserError, match='model.ckpt-1 is damaged'):
        next(evaluation.new_checkpoints(str(tmp_path), 1))
