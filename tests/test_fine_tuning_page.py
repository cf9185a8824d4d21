"""docs/fine_tuning.md: its changes of the package do what the page says."""

import re
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.config import CLASSIC
from tests.helpers import checkouts, pages, programs

PATIENCE, CLASS_WEIGHTS = [item.text for item in pages.items('fine_tuning.md') if item.is_python]


@pytest.mark.slow
def test_patience(tmp_path, data_dir):
    """Almost nothing is learnt, so the fifth evaluation after the best one ends the run."""
    place = r' +self\._evaluate\(checkpoint\.Checkpoint.*\n'
    checkout = checkouts.copy(tmp_path, {'eval_hook.py': [(place, PATIENCE)]})
    flags = [f'--data_dir={data_dir}', f'--train_dir={tmp_path / "run"}', '--batch_size=8']
    flags += ['--max_steps=40', '--eval_every=1', '--initial_learning_rate=0.000001']
    status, stdout, stderr = programs.run('cifar10_train', *flags, checkout=checkout)
    assert status == 0, stderr
    (step,) = re.findall(r'(?m)^No better precision in five evaluations: .* step (\d+)$', stdout)
    precisions = [float(value) for value in re.findall(r'precision @ 1 = (\S+) \(', stdout)]
    assert int(step) == len(precisions) == precisions.index(max(precisions)) + 6 < 40


def test_class_weights():
    """Against NumPy; without weight decay."""
    place = r"(?=    tf.add_to_collection\('losses', tf.reduce_mean\(cross_entropy)"
    source = checkouts.replace(checkouts.read_module('model.py'), [(place, CLASS_WEIGHTS)])
    model = types.ModuleType('model')
    exec(source, vars(model))
    logits = np.random.RandomState(0).normal(size=[8, 3]).astype(np.float32)
    labels = np.array([0, 1, 2, 2, 1, 0, 0, 0])
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(model.loss(tf.constant(logits), tf.constant(labels), hparams=CLASSIC))
    log_sums = np.log(np.exp(logits.astype(np.float64)).sum(1))
    cross_entropies = log_sums - logits[np.arange(8), labels]
    np.testing.assert_allclose(
        found, (np.array([0.5, 1.0, 3.0])[labels] * cross_entropies).mean(), rtol=1e-5
    )
