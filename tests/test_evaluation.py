"""Every example once, the moving averages, each checkpoint once."""

import json
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import FAST
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, data_sets, events, faults

PICTURES = {'confusion_matrix', 'reliability', 'mistakes', 'classes/text_summary'}


def _evaluator(paths, num_examples=None, num_views=1):
    return evaluation.Evaluator(data_sets.records(paths), '/cpu:0', num_examples, num_views)


@pytest.fixture
def paths(data_dir):
    """The test file, of 50 examples."""
    return dataset.read(data_dir).test.paths


@pytest.mark.parametrize('num_examples', [None, 1, 30])
def test_each_example_is_scored_once(tmp_path, data_dir, paths, num_examples):
    path, variables = checkpoints.save(tmp_path, 7)
    result = _evaluator(paths, num_examples).evaluate(checkpoint.read(path))
    correct, cross_entropy = checkpoints.expected_result(data_dir, variables, num_examples)
    assert (result.scores.num_correct, result.scores.num_examples) == (correct, num_examples or 50)
    assert (result.step, result.num_views) == (7, 1)
    np.testing.assert_allclose(result.losses['losses/cross_entropy'], cross_entropy, rtol=1e-4)
    decays = {
        'losses/%s/weight_loss' % layer: 0.004
        * (variables[layer + '/weights'].astype(float) ** 2).sum()
        / 2
        for layer in ('local3', 'local4')
    }
    for name, value in decays.items():
        np.testing.assert_allclose(result.losses[name], value, rtol=1e-4)
    np.testing.assert_allclose(
        result.losses['total_loss'], cross_entropy + sum(decays.values()), rtol=1e-4
    )


def test_a_batch_that_does_not_divide(tmp_path):
    """150 training examples are a batch of 128 and one of 22."""
    data_dir = data_sets.write(tmp_path / 'data', train_records=30)
    path, variables = checkpoints.save(tmp_path, 1)
    paths = dataset.read(data_dir).train.paths
    result = _evaluator(paths).evaluate(checkpoint.read(path))
    correct, cross_entropy = checkpoints.expected_result(data_dir, variables, paths=paths)
    assert (result.scores.num_correct, result.scores.num_examples) == (correct, 150)
    np.testing.assert_allclose(result.losses['losses/cross_entropy'], cross_entropy, rtol=1e-4)


def test_raw_weights_without_averages(tmp_path, data_dir, paths, capsys):
    path, variables = checkpoints.save(tmp_path, 3, averages=False, global_step=False)
    result = _evaluator(paths).evaluate(checkpoint.read(path))
    assert (result.step, result.scores.num_correct) == (
        3,
        checkpoints.expected_result(data_dir, variables)[0],
    )
    assert (
        '%s has no moving averages: using the weights themselves' % path in capsys.readouterr().out
    )


def test_one_graph_for_many_checkpoints(tmp_path, data_dir, paths):
    evaluator = _evaluator(paths)
    for step in (1, 2):
        path, variables = checkpoints.save(tmp_path, step, seed=step)
        assert (
            evaluator.evaluate(checkpoint.read(path)).scores.num_correct
            == checkpoints.expected_result(data_dir, variables)[0]
        )


def test_a_checkpoint_that_is_not_finite(tmp_path, paths):
    path, _ = checkpoints.save(tmp_path, 1, poison='local4/biases/ExponentialMovingAverage')
    with pytest.raises(UserError, match='local4/biases/ExponentialMovingAverage is not finite'):
        _evaluator(paths).evaluate(checkpoint.read(path))


def test_a_checkpoint_of_another_network(tmp_path, paths):
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable('conv1/biases', [32])
        session.run(variable.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / 'model.ckpt'), 1)
    with pytest.raises(
        UserError, match=r'does not fit: its conv1/biases is float32 \[32\], not float32 \[64\]'
    ):
        _evaluator(paths).evaluate(checkpoint.read(path))


@pytest.mark.parametrize(
    'label, blind, told',
    [
        (3, False, '^{path} has changed since the start: put'),
        (255, False, '^{path} has changed since the start: put'),
        (255, True, '^label 255 is outside 0 to 9, because a data file has changed: put'),
    ],
)
def test_labels_that_change(tmp_path, own_data_dir, monkeypatch, label, blind, told):
    """No precision of other labels is told, also if the time of the file is put back."""
    (path,) = dataset.read(own_data_dir).test.paths
    evaluator, saved = _evaluator([path]), checkpoint.read(checkpoints.save(tmp_path, 1)[0])
    faults.relabel(path, label)
    if blind:
        monkeypatch.setattr('cifar10.data.verification.Snapshot.changed', lambda snapshot: None)
    with pytest.raises(UserError, match=told.format(path=path)):
        evaluator.evaluate(saved)


def test_the_weight_decay_of_the_run(tmp_path, paths):
    """Of each checkpoint, because another run may come to the directory."""
    evaluator = _evaluator(paths, 1)
    for decay in (0.5, 0.0):
        (tmp_path / 'run.json').write_text(
            json.dumps(
                dict(FAST._replace(fc_weight_decay=decay)._asdict(), num_towers=1, class_names=None)
            )
        )
        path, variables = checkpoints.save(tmp_path, 1)
        losses = evaluator.evaluate(checkpoint.read(path)).losses
        expected = decay * (variables['local3/weights'].astype(float) ** 2).sum() / 2
        np.testing.assert_allclose(losses['losses/local3/weight_loss'], expected, rtol=1e-4)
        np.testing.assert_allclose(
            losses['total_loss'], sum(losses.values()) - losses['total_loss'], rtol=1e-6
        )


def test_the_precision_is_printed_and_written(tmp_path, data_dir, paths, capsys):
    path, variables = checkpoints.save(tmp_path / 'train', 12)
    evaluation.evaluate(_evaluator(paths), [checkpoint.read(path)], str(tmp_path / 'eval'))
    correct, _ = checkpoints.expected_result(data_dir, variables)
    line, *report = capsys.readouterr().out.splitlines()
    assert line[26:44] == ': precision @ 1 = ' and re.fullmatch(
        r'%.3f \(%d of 50, step 12\), 95 %% interval 0\.\d{3} to 0\.\d{3}'
        % (correct / 50, correct),
        line[44:],
    )
    assert report[0].split() == ['class', 'precision', 'recall', 'count'] and any(
        'Confusion matrix' in told for told in report
    )
    written = {tag: (step, value) for step, tag, value in events.scalars(tmp_path / 'eval')}
    assert written['Precision @ 1'] == (12, pytest.approx(correct / 50))
    assert set(written) - PICTURES == {
        'Precision @ 1',
        'calibration_error',
        'total_loss',
        'losses/cross_entropy',
        'losses/local3/weight_loss',
        'losses/local4/weight_loss',
    }
    assert {step for step, _ in written.values()} == {12}


def test_several_views_have_their_own_tags(tmp_path, paths, capsys):
    path, _ = checkpoints.save(tmp_path / 'train', 12)
    restored = checkpoint.read(path)
    for num_views in (1, 2):
        evaluation.evaluate(
            _evaluator(paths, 2, num_views), [restored], str(tmp_path / str(num_views))
        )
    assert re.search(
        r': precision @ 1 = [01]\.\d{3} \([0-2] of 2, 2 views, step 12\), 95 % interval ',
        capsys.readouterr().out,
    )
    one, two = [[tag for _, tag, _ in events.scalars(tmp_path / name)] for name in '12']
    assert two == [tag + ', 2 views' for tag in one]
    assert one[0] == 'Precision @ 1'


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match='test_batch.bin is missing'):
        _evaluator(dataset.read(str(tmp_path)).test.paths)
