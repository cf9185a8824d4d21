"""Evaluation: each example once, moving averages, each checkpoint once."""

import dataclasses
import re
import sys

import numpy as np
import pytest

from cifar10 import cpu_kernels, evaluation
from cifar10.config import FAST
from cifar10.data import dataset
from cifar10.runs import checkpoint, run_record
from cifar10.system import machine
from tests.helpers import checkpoints, data_sets, events, oracle


def _evaluator(paths, num_examples=None):
    return evaluation.Evaluator(data_sets.records(paths), '/cpu:0', num_examples)


@pytest.fixture
def paths(data_dir):
    """The test file, of 50 examples."""
    return dataset.read(data_dir).test.paths


@pytest.mark.parametrize('test_records, num_examples', [(150, None), (150, 129), (3, None)])
def test_each_example_is_scored_once(tmp_path, monkeypatch, test_records, num_examples):
    """The last batch is padded to 128 images, which do not count."""
    monkeypatch.setattr(machine, 'num_cores', lambda: 2)
    data_dir = data_sets.write(tmp_path / 'data', test_records=test_records)
    paths = dataset.read(data_dir).test.paths
    path, variables = checkpoints.save(tmp_path, 7)
    evaluator = _evaluator(paths, num_examples)
    result = evaluator.evaluate(checkpoint.read(path))
    assert cpu_kernels.num_sub_batches(evaluator.graph) == 4
    correct, cross_entropy = checkpoints.expected_result(data_dir, variables, num_examples)
    metrics = result.metrics
    assert (metrics.num_correct, metrics.num_examples) == (correct, num_examples or test_records)
    assert result.step == 7
    losses = {
        f'losses/{layer}/weight_loss': 0.004
        * (variables[layer + '/weights'].astype(float) ** 2).sum()
        / 2
        for layer in ('local3', 'local4')
    }
    losses['losses/cross_entropy'] = cross_entropy
    losses['total_loss'] = sum(losses.values())
    assert result.losses == pytest.approx(losses, rel=1e-4)
    # the most confident mistakes; of equal ones the first
    wrong = np.flatnonzero(~metrics.is_correct).tolist()
    wrong.sort(key=lambda i: (-metrics.confidences[i], i))
    assert [mistake.index for mistake in result.mistakes] == wrong[:24]
    _, images = oracle.read_records(paths)
    for mistake in result.mistakes:
        assert (mistake.image.transpose(1, 2, 0) == images[mistake.index]).all()


def test_raw_weights_without_averages(tmp_path, data_dir, paths, capsys):
    path, variables = checkpoints.save(tmp_path, 3, averages=False, global_step=False)
    result = _evaluator(paths).evaluate(checkpoint.read(path))
    assert (result.step, result.metrics.num_correct) == (
        3,
        checkpoints.expected_result(data_dir, variables)[0],
    )
    assert f'{path} has no moving averages: using the weights' in capsys.readouterr().out


def test_one_graph_for_the_checkpoints_of_a_run(tmp_path, data_dir, paths):
    """A fresh trainer can start another run, with another weight decay, and so another graph."""
    evaluator, graphs, decays = _evaluator(paths), [], [0.5, 0.5, 0.0]
    for step, decay in enumerate(decays, 1):
        hparams = dataclasses.replace(FAST, fc_weight_decay=decay)
        run_record.write(str(tmp_path), run_record.RunRecord(hparams))
        path, variables = checkpoints.save(tmp_path, step, seed=step)
        result = evaluator.evaluate(checkpoint.read(path))
        correct, cross_entropy = checkpoints.expected_result(data_dir, variables)
        assert result.metrics.num_correct == correct
        expected = {'losses/cross_entropy': cross_entropy}
        for layer in ('local3', 'local4') if decay else ():
            squares = variables[layer + '/weights'].astype(float) ** 2
            expected[f'losses/{layer}/weight_loss'] = decay * squares.sum() / 2
        expected['total_loss'] = sum(expected.values())
        assert result.losses == pytest.approx(expected, rel=1e-4)
        graphs.append(evaluator.graph)
    assert graphs[0] is graphs[1] is not graphs[2]


@pytest.mark.parametrize('is_available', [True, False])
def test_what_is_printed_and_written(tmp_path, data_dir, paths, capsys, monkeypatch, is_available):
    """Without matplotlib, one line replaces the figures."""
    if not is_available:
        monkeypatch.setitem(sys.modules, 'matplotlib', None)
    path, variables = checkpoints.save(tmp_path / 'train', 12)
    evaluator = _evaluator(paths)
    last = evaluation.evaluate_checkpoints(
        evaluator, [checkpoint.read(path)], str(tmp_path / 'eval'), 10
    )
    assert (last.step, last.class_names) == (12, [str(number) for number in range(10)])
    correct, _ = checkpoints.expected_result(data_dir, variables)
    *missing, line, report = capsys.readouterr().out.split('\n', 1 if is_available else 2)
    assert missing == (
        [] if is_available else ['No figures without matplotlib: pip install matplotlib']
    )
    assert line[26:44] == ': precision @ 1 = ' and re.fullmatch(
        rf'{correct / 50:.3f} \({correct} of 50, step 12\), 95 % interval 0\.\d{{3}} to 0\.\d{{3}}, precision @ 10 = 1\.000',
        line[44:],
    )
    assert report.startswith('class  precision ')
    written = {tag: (step, value) for step, tag, value in events.scalars(tmp_path / 'eval')}
    assert written['Precision @ 1'] == (12, pytest.approx(correct / 50))
    assert set(written) == {
        'Precision @ 1',
        'Precision @ 10',
        'calibration_error',
        'total_loss',
        'losses/cross_entropy',
        'losses/local3/weight_loss',
        'losses/local4/weight_loss',
    } | ({'confusion_matrix', 'reliability', 'mistakes'} if is_available else set())
    assert {step for step, _ in written.values()} == {12}
    assert evaluation.evaluate_checkpoints(evaluator, [], str(tmp_path / 'eval')) is None
