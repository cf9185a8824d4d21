"""docs/exercises.md: all programs follow a changed network."""

import hashlib
import json
import os
import re
import shutil

import numpy as np
from PIL import Image
import pytest

from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import checkouts, faults, messages, oracle, programs
from tests.helpers.changed_networks import (
    AVERAGE,
    CREATE,
    DISTORT,
    NUM_FILTERS,
    PAGE,
    RATE,
    RESIDUAL,
    SAMPLE,
    NumpyLayers,
    assert_moved,
    page_number,
    residual_logits,
    write,
)


def _call(script, *args):
    """Return the stdout of a script that succeeds, called in this process."""
    status, stdout, stderr = programs.call(script, *args)
    assert status == 0, stderr
    return stdout


def _assert_one_line(result, *parts):
    """Assert that a script has ended with status 1 and one line on stderr."""
    assert result[0] == 1
    faults.assert_one_line(result[2], *parts)


# The residual network in the programs


RESIDUAL_STEPS = ['--batch_size=16', '--deterministic', '--seed=1']


@pytest.fixture(scope='module')
def residual(tmp_path_factory):
    """The path of the residual network."""
    return write(tmp_path_factory.mktemp('network'), 'residual')


@pytest.fixture(scope='module')
def residual_run(tmp_path_factory, data_dir, residual):
    """A run of 20 steps with a relative path of the network: its directory and stdout."""
    run = tmp_path_factory.mktemp('residual') / 'run'
    given = f'--network={os.path.relpath(residual)}'
    arguments = faults.evaluated_job(data_dir, run, '--max_steps=20', given, *RESIDUAL_STEPS)
    return run, _call('cifar10_train', *arguments)


@pytest.fixture
def own_residual_run(tmp_path, residual_run):
    """A copy of its directory."""
    shutil.copytree(str(residual_run[0]), str(tmp_path / 'run'))
    return tmp_path / 'run'


def test_a_run_of_the_residual_network(residual, residual_run):
    """run.json has the absolute path, and the SHA-256 of the source."""
    run, stdout = residual_run
    assert f'Network: {page_number("A residual network")} parameters ' in stdout
    ((_, _, step),) = re.findall(messages.precision(50), stdout)
    assert step == '20'
    record = json.loads((run / 'run.json').read_text())
    assert record['network'] == residual
    assert record['network_checksum'] == hashlib.sha256(RESIDUAL.encode()).hexdigest()
    assert_moved(f'{run}/model.ckpt-20')


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, data_dir, residual, residual_run):
    for steps in (8, 20):
        flags = [f'--max_steps={steps}', f'--network={residual}', *RESIDUAL_STEPS]
        stdout = _call('cifar10_train', *faults.job(data_dir, tmp_path / 'run', *flags))
    assert messages.resuming(tmp_path / 'run', 8) in stdout and 'has changed' not in stdout
    one, two = [
        checkpoint.read(f'{run}/model.ckpt-20').values
        for run in (tmp_path / 'run', residual_run[0])
    ]
    assert sorted(one) == sorted(two)
    for name, value in one.items():
        assert value.tobytes() == two[name].tobytes(), name


def _probabilities(stdout):
    (row,) = [json.loads(line)['predictions'] for line in stdout.splitlines()]
    return [each['probability'] for each in sorted(row, key=lambda each: each['class'])]


def _assert_same_predictions(call, directory, data_dir, run, always=()):
    """Evaluate, predict and export; return the groups of messages.precision.

    Args:
      call: a function like `_call`.
      directory: a directory for the results.
      always: flags of all programs.
    """
    table, image = directory / 'predictions.csv', str(directory / 'image.png')
    flags = ['--run_once', f'--predictions_file={table}', *always]
    stdout = call('cifar10_eval', *faults.evaluation(data_dir, run, directory / 'eval', *flags))
    (precision,) = re.findall(messages.precision(50), stdout)
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    Image.fromarray(images[0]).save(image)
    exported = f'{directory}/exported'
    call('cifar10_export', f'--checkpoint_dir={run}', f'--export_dir={exported}', *always)
    rows = [[float(value) for value in table.read_text().splitlines()[1].split(',')[2:]]]
    stdout = call(
        'cifar10_predict', '--json', '--top_k=10', f'--checkpoint_dir={run}', *always, image
    )
    rows.append(_probabilities(stdout))
    rows += oracle.exported_probabilities(f'{exported}/1', images[:1]).tolist()
    for row in rows[1:]:
        np.testing.assert_allclose(row, rows[0], atol=1e-5)
    return precision


def test_evaluation_prediction_and_export(tmp_path, data_dir, residual, residual_run):
    """All agree with the trainer, and with NumPy and the moving averages of the checkpoint."""
    run, stdout = residual_run
    always = ['--network=' + residual]
    precision = _assert_same_predictions(_call, tmp_path, data_dir, run, always)
    assert [precision] == re.findall(messages.precision(50), stdout)
    values = checkpoint.read(f'{run}/model.ckpt-20').values
    averages = {name: values.get(name + AVERAGE, value) for name, value in values.items()}
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    logits = residual_logits(oracle.evaluation_images(images), NumpyLayers(averages, False))
    found = np.loadtxt(str(tmp_path / 'predictions.csv'), delimiter=',', skiprows=1)[:, 2:]
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_checkpoint_of_another_network(tmp_path, data_dir, residual, own_residual_run):
    before = sorted(path.name for path in own_residual_run.iterdir())
    arguments = faults.job(data_dir, own_residual_run, '--max_steps=21', '--batch_size=16')
    for name in ('model', 'resnet', write(tmp_path, 'renamed')):
        _assert_one_line(
            programs.call('cifar10_train', *arguments, f'--network={name}'),
            f'was trained with network {residual}, not ',
            ': give the same, or another directory, or set --fresh to move the run aside',
        )
    assert sorted(path.name for path in own_residual_run.iterdir()) == before
    evaluation = faults.evaluation(data_dir, own_residual_run, tmp_path / 'eval', '--run_once')
    result = programs.call('cifar10_eval', *evaluation, '--network=resnet')
    _assert_one_line(result, ' does not fit: ', 'give the --network of its run')


def test_a_changed_source(data_dir, own_residual_run, tmp_path):
    """The trainer and the evaluation print it; a deterministic run is refused."""
    (tmp_path / 'mine.py').write_text(RESIDUAL + '# changed\n')
    path = own_residual_run / 'run.json'
    record = dict(json.loads(path.read_text()), network=f'{tmp_path}/mine.py')
    path.write_text(json.dumps(record))
    evaluation = faults.evaluation(data_dir, own_residual_run, tmp_path / 'eval', '--run_once')
    stdout = _call('cifar10_eval', *evaluation, f'--network={tmp_path}/mine.py')
    assert f'trained with another source of the network {tmp_path}/mine.py\n' in stdout
    flags = ['--max_steps=21', f'--network={tmp_path}/mine.py']
    arguments = faults.job(data_dir, own_residual_run, *flags)
    result = programs.call('cifar10_train', *arguments, *RESIDUAL_STEPS)
    _assert_one_line(result, 'cannot continue bit for bit: its network_checksum was ')
    stdout = _call('cifar10_train', *arguments, '--batch_size=16')
    assert f'\nThe source of the network has changed: {tmp_path}/mine.py\n' in stdout


# Slow: changes in every program


def _follow(tmp_path, data_dir, call, training=(), always=()):
    """Train on one tower and on two; evaluate, predict, export; return the output of the trainers.

    Args:
      call: a function like `_call`.
      training: flags of the trainers.
      always: flags of all programs.
    """
    run, flags = tmp_path / 'run', ['--batch_size=8', '--seed=1', *training, *always]
    one = call('cifar10_train', *faults.job(data_dir, run, '--max_steps=2', *flags))
    arguments = faults.evaluated_job(data_dir, run, '--max_steps=4', '--num_gpus=2', *flags)
    two = call('cifar10_multi_gpu_train', *arguments)
    assert messages.resuming(run, 2) in two
    precision = _assert_same_predictions(call, tmp_path, data_dir, run, always)
    assert [precision] == re.findall(messages.precision(50), two) and precision[2] == '4'
    return one + two


@pytest.mark.slow
def test_resnet(tmp_path, data_dir):
    """With the recipe that docs/recipes.md recommends. Its record is enough for the evaluation."""
    run, flags = tmp_path / 'run', ['--network=resnet', '--recipe=fast', '--max_steps=3']
    stdout = _call('cifar10_train', *faults.evaluated_job(data_dir, run, *flags))
    assert 'Network: 269722 parameters ' in stdout
    assert_moved(f'{run}/model.ckpt-3', 76)
    precision = _assert_same_predictions(_call, tmp_path, data_dir, run)
    assert [precision] == re.findall(messages.precision(50), stdout)


@pytest.mark.slow
def test_dropout(tmp_path, data_dir):
    """Only the training drops outputs: evaluation, prediction and export agree."""
    always = ['--network=' + write(tmp_path, 'dropout')]
    _follow(tmp_path, data_dir, _call, always=always)
    flags = ['--deterministic', '--seed=1', *always]
    _call('cifar10_train', *faults.job(data_dir, tmp_path / 'other', '--max_steps=2', *flags))
    arguments = faults.job(data_dir, tmp_path / 'other', '--max_steps=3', *flags)
    result = programs.call('cifar10_train', *arguments)
    _assert_one_line(result, 'cannot continue bit for bit: no checkpoint has the state of dropout')


@pytest.mark.slow
def test_another_loss(tmp_path, data_dir):
    """The evaluation reports the cross entropy, and the weight decay."""
    always = ['--network=' + write(tmp_path, 'another_loss')]
    output = _follow(tmp_path, data_dir, _call, always=always)
    (wanted,) = re.findall(r'The first loss is about (\d\.\d\d) instead', PAGE)
    assert float(messages.log_lines(output)[0][1]) == pytest.approx(float(wanted), abs=0.015)


def _checkout(directory, changes):
    """Return a function like `_call` for a checkout with changes."""
    directory.mkdir()

    def call(script, *args):
        status, stdout, stderr = programs.run(script, *args, checkout=checkout)
        assert status == 0, stderr
        return stdout

    checkout = checkouts.copy(directory, changes)
    return call


@pytest.mark.slow
def test_the_residual_network_in_the_file_of_the_book(tmp_path, data_dir):
    _, functions = RESIDUAL.split('import CLASSIC\n')
    changes = {'model.py': [(r'(?s)def inference\(.*?    return logits\n', functions)]}
    output = _follow(tmp_path, data_dir, _checkout(tmp_path / 'checkout', changes))
    assert output.count(f'Network: {page_number("A residual network")} parameters ') == 2
    assert_moved(f'{tmp_path}/run/model.ckpt-4')


@pytest.mark.slow
def test_width_as_a_hyperparameter(tmp_path, data_dir):
    """Only the trainers get the number: the others read it in the record."""
    changes = {
        'config.py': [(r'(?<=\n)(?=    crop_range: )', NUM_FILTERS)],
        'model.py': [(f"(?<='conv{i}', )64", 'hparams.num_filters') for i in (1, 2)],
    }
    call = _checkout(tmp_path / 'checkout', changes)
    output = _follow(tmp_path, data_dir, call, ['--num_filters=32'])
    assert output.count(f'Network: {page_number("Width as a hyperparameter")} parameters ') == 2


@pytest.mark.slow
def test_all_changes_of_the_training(tmp_path, data_dir):
    changes = {
        'config.py': [
            (r"(?<=choices=\['gradient_descent', )", "'adam', "),
            (r"(?<=choices=\['staircase', )", "'cosine', "),
            ('IMAGE_SIZE = 24', 'IMAGE_SIZE = 32'),
        ],
        'optimizer.py': [CREATE, RATE],
        'distortions.py': [SAMPLE, DISTORT],
    }
    flags = re.findall(r'^Then `(.*?)`', PAGE, re.MULTILINE)
    call = _checkout(tmp_path / 'checkout', changes)
    output = _follow(tmp_path, data_dir, call, ' '.join(flags).split())
    (number,) = re.findall(r'then has (\d+) parameters', PAGE)
    assert len(flags) == 2 and output.count(f'Network: {number} parameters ') == 2
