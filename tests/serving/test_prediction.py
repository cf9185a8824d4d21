"""Predictions of cifar10_predict.py, against the evaluation of the same pixels and NumPy."""

import json
import os
import pathlib
from types import SimpleNamespace

import numpy as np
from PIL import Image
import pytest

from cifar10 import evaluation, network
from cifar10.data import dataset, synthetic
from cifar10.network import Network
from cifar10.runs import checkpoint
from cifar10.serving import trained_model
from tests.helpers import checkpoints, messages, oracle, programs

COUNT = 7


@pytest.fixture(scope='module')
def run(tmp_path_factory, data_dir):
    """A directory with a checkpoint, and test images as files in the folder of their number."""
    tmp_path = tmp_path_factory.mktemp('prediction')
    path, _ = checkpoints.save(tmp_path / 'run', 12)
    (tmp_path / 'run' / 'run.json').write_text(
        json.dumps({'num_towers': 1, 'class_names': synthetic.CLASS_NAMES})
    )
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    files = []
    for i, image in enumerate(images[:COUNT]):
        (tmp_path / 'images' / str(i)).mkdir(parents=True)
        files.append(str(tmp_path / 'images' / str(i) / 'image.png'))
        Image.fromarray(image).save(files[-1])
    return SimpleNamespace(
        path=path, directory=str(tmp_path / 'run'), files=files, folder=str(tmp_path / 'images')
    )


@pytest.fixture
def own_run(run, tmp_path):
    """The same for one test, without a record."""
    path, _ = checkpoints.save(tmp_path / 'run', 12)
    return SimpleNamespace(path=path, directory=str(tmp_path / 'run'), files=run.files)


def _predict(run, *args):
    return programs.call('cifar10_predict', '--checkpoint_dir=' + run.directory, *args)


def _read_json(stdout):
    """Return the output for each file, and the probabilities in label order."""
    rows = [json.loads(line) for line in stdout.splitlines()]
    by_class = [sorted((each['class'], each) for each in one['predictions']) for one in rows]
    return rows, [[each['probability'] for _, each in one] for one in by_class]


def test_probabilities_equal_those_of_the_evaluation(run, data_dir):
    status, stdout, stderr = _predict(run, '--json', '--top_k=10', *run.files)
    rows, probabilities = _read_json(stdout)
    assert (status, stderr, [one['file'] for one in rows]) == (0, '', run.files)
    evaluator = evaluation.Evaluator(dataset.read(data_dir).test, '/cpu:0', COUNT)
    expected = np.exp(evaluator.evaluate(checkpoint.read(run.path)).metrics.log_probabilities)
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    for one in rows:
        given = [each['probability'] for each in one['predictions']]
        assert given == sorted(given, reverse=True)
        for each in one['predictions']:
            assert each['name'] == synthetic.CLASS_NAMES[each['class']]


def test_text(run):
    _, stdout, _ = _predict(run, '--json', '--top_k=2', *run.files)
    rows = [json.loads(line) for line in stdout.splitlines()]
    assert all(len(one['predictions']) == 2 for one in rows)
    values = [
        [entry[key] for entry in one['predictions'] for key in ('name', 'probability')]
        for one in rows
    ]
    _, stdout, _ = _predict(run, '--top_k=2', *run.files)
    lines = [
        f'{path}: {first} {p_first:.3f}, {second} {p_second:.3f}'
        for path, (first, p_first, second, p_second) in zip(run.files, values)
    ]
    assert stdout.splitlines() == lines


def test_directories(run):
    (open(os.path.join(run.folder, '.hidden'), 'w')).close()
    status, stdout, stderr = _predict(run, run.folder)
    assert (status, stdout) == (
        1,
        '',
    ) and 'images has no files (--recursive includes its subdirectories): give another' in stderr
    status, stdout, _ = _predict(run, '--recursive', run.folder, run.files[0])
    assert (
        status == 0
        and [line.split(': ')[0] for line in stdout.splitlines()] == run.files + run.files[:1]
    )
    assert _predict(run, os.path.dirname(run.files[2]))[1].startswith(run.files[2] + ': ')


def test_a_link_to_a_directory(run, tmp_path):
    """Its images are predicted; hidden ones are counted."""
    (tmp_path / 'photos').mkdir()
    (tmp_path / 'photos' / 'link').symlink_to(os.path.dirname(run.files[2]))
    (tmp_path / 'photos' / '.more.png').write_text('')
    status, stdout, stderr = _predict(run, '--recursive', str(tmp_path / 'photos'))
    assert (status, stdout.count('\n')) == (0, 1)
    assert stdout.startswith(f'{tmp_path}/photos/link/')
    assert stderr.endswith('photos/.more.png is left out, because it is hidden (left out: 1)\n')


def test_unusable_files_are_left_out(run, tmp_path):
    (tmp_path / 'text\n.jpg').write_text('a text')
    (tmp_path / 'half.png').write_bytes(pathlib.Path(run.files[0]).read_bytes()[:300])
    odd = [str(tmp_path / name) for name in ('text\n.jpg', 'half.png', 'missing.gif')]
    status, stdout, stderr = _predict(run, run.files[0], *(odd + run.files[1:2]))
    assert status == 1 and [line.split(': ')[0] for line in stdout.splitlines()] == run.files[:2]
    lines = stderr.splitlines()
    assert len(lines) == 3
    for part, name in [
        ('text\\n.jpg is left out: ' + messages.NOT_AN_IMAGE, 'text'),
        ('half.png is left out: the image is damaged or incomplete (', 'half'),
        ('missing.gif is left out: No such file or directory', 'missing'),
    ]:
        assert any(part in line for line in lines), name


def test_the_standard_input(run, monkeypatch):
    with open(run.files[3], 'rb') as opened:
        monkeypatch.setattr('sys.stdin', SimpleNamespace(buffer=opened))
        status, stdout, _ = _predict(run, '-')
        assert (status, stdout) == (0, _predict(run, run.files[3])[1].replace(run.files[3], '-'))
        status, stdout, stderr = _predict(run, '-')  # now empty
        assert (status, stdout) == (1, '') and '- is left out: ' + messages.NOT_AN_IMAGE in stderr


def test_names_of_the_run(own_run, tmp_path):
    record = tmp_path / 'run' / 'run.json'
    record.write_text(json.dumps({'num_towers': 1, 'class_names': ['one', 'too', 'few']}))
    status, _, stderr = _predict(own_run, own_run.files[0])
    complaint = (
        'softmax_linear/biases/ExponentialMovingAverage is float32 [10], not float32 [3]: '
        'give the --network of its run, or another --checkpoint or --checkpoint_dir\n'
    )
    assert status == 1 and complaint in stderr
    record.unlink()  # like a checkpoint of the tutorial
    status, stdout, stderr = _predict(own_run, '--json', own_run.files[0])
    assert status == 0 and 'The checkpoint has no record of its class names: ' in stderr
    for entry in json.loads(stdout)['predictions']:
        assert entry['name'] == dataset.CLASS_NAMES[entry['class']]


def test_class_numbers_without_a_record(tmp_path):
    """As many as there are output weights."""
    variables = network.variables(Network(num_classes=7).graph())
    path = str(tmp_path / 'model.ckpt-1')
    zeros = {name: np.zeros(v.shape.as_list(), np.float32) for name, v in variables.items()}
    checkpoints.write(path, zeros)
    found = trained_model.read(path)
    assert (found.network, found.class_names) == (Network(num_classes=7), list('0123456'))


def test_the_chosen_checkpoint(own_run, tmp_path):
    checkpoints.save(tmp_path / 'run', 13, seed=1)
    latest = _predict(own_run, own_run.files[0])[1]
    chosen = _predict(own_run, '--checkpoint=' + own_run.path, own_run.files[0])[1]
    assert chosen != latest
