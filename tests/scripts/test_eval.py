"""cifar10_eval.py."""

import os
import sys

import numpy as np

from cifar10.data import dataset, synthetic
from tests.helpers import checkpoints, faults, oracle, programs


def test_what_is_evaluated(tmp_path, data_dir):
    """Training images; a chosen checkpoint, which needs no --run_once."""
    path, chosen = checkpoints.save(tmp_path, 1)
    checkpoints.save(tmp_path, 2, seed=1)
    status, stdout, _ = programs.call(
        'cifar10_eval',
        '--eval_data=train_eval',
        f'--checkpoint={path}.index',
        '--num_examples=70',
        '--use_gpu',
        *faults.evaluation(data_dir, tmp_path, tmp_path / 'eval'),
    )
    paths = dataset.read(data_dir).train.paths
    correct, _ = checkpoints.expected_result(data_dir, chosen, 70, paths)
    assert status == 0 and f'({correct} of 70, step 1)' in stdout
    assert stdout.count('precision @ 1') == 1
    assert stdout.startswith('No GPU found: using /cpu:0 (')


def test_top_k_predictions_and_figures(tmp_path, data_dir):
    """Compare the latest checkpoint's precision @ 3 and every probability with NumPy."""
    checkpoints.save(tmp_path, 1, seed=1)
    _, variables = checkpoints.save(tmp_path, 2)
    labels, images = oracle.read_records(dataset.read(data_dir).test.paths)
    logits = oracle.logits(oracle.evaluation_images(images), variables)
    status, stdout, stderr = programs.call(
        'cifar10_eval',
        '--run_once',
        '--top_k=3',
        f'--predictions_file={tmp_path / "p.csv"}',
        f'--figures_dir={tmp_path / "new" / "figures"}',
        *faults.evaluation(data_dir, tmp_path, tmp_path / 'eval'),
    )
    top_3 = np.mean([label in order[:3] for label, order in zip(labels, np.argsort(-logits, 1))])
    assert (status, stderr) == (0, '') and f', precision @ 3 = {top_3:.3f}\n' in stdout
    lines = (tmp_path / 'p.csv').read_text().splitlines()
    assert lines[0] == ','.join(['index', 'label'] + synthetic.CLASS_NAMES)
    found = np.array([[float(value) for value in line.split(',')] for line in lines[1:]])
    np.testing.assert_array_equal(found[:, :2].T, [np.arange(50), labels])
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(found[:, 2:], probabilities, atol=1e-4)
    begin = {'png': b'\x89PNG', 'svg': b'<?xm'}
    assert {path.name: path.read_bytes()[:4] for path in (tmp_path / 'new/figures').iterdir()} == {
        f'{name}.{suffix}': begin[suffix]
        for name in ('confusion_matrix', 'mistakes', 'reliability')
        for suffix in begin
    }


def test_mistakes(tmp_path, data_dir, monkeypatch):
    path, _ = checkpoints.save(tmp_path, 1)
    (tmp_path / 'file').write_text('')
    for flag, complaint in [
        ('--predictions_file={}/none/p.csv', 'Cannot write {}/none/p.csv (No such file'),
        ('--figures_dir={}/file', '{}/file is not a directory: give another'),
        ('--figures_dir={}/new', '--figures_dir needs matplotlib: pip install matplotlib'),
        ('--top_k=1', 'The checkpoint {}/model.ckpt-1 is damaged ('),
    ]:
        if 'damaged' in complaint:
            os.truncate(path + '.index', 5)
        if 'matplotlib' in complaint:
            monkeypatch.setitem(sys.modules, 'matplotlib', None)
        status, stdout, stderr = programs.call(
            'cifar10_eval',
            '--run_once',
            flag.format(tmp_path),
            *faults.evaluation(data_dir, tmp_path, tmp_path / 'eval'),
        )
        assert status and not stdout and stderr.count('\n') == 1
        assert complaint.format(tmp_path) in stderr
    assert not (tmp_path / 'eval').exists() and not (tmp_path / 'new').exists()


def test_timeout(tmp_path, data_dir):
    status, stdout, stderr = programs.call(
        'cifar10_eval',
        '--timeout_secs=0',
        *faults.evaluation(data_dir, tmp_path, tmp_path / 'eval'),
    )
    assert (status, stdout) == (1, f'Waiting for a checkpoint in {tmp_path}\n')
    assert f'No checkpoint was found in {tmp_path} within 0 seconds: train there first' in stderr
