"""Runs saved by an earlier version, or by TensorFlow 1.15.5, give the same results as then.

A folder of earlier_runs/ has two files. run.tar.xz is the checkpoint and the record of step 5. Each
variable repeats 1009 random values, so that it compresses well. expected.json holds the results of
the scripts of that version: the summaries of the evaluation, and norm and sum of each variable
after two more steps. All training images are equal and of one colour: distortions do not change
them, so the steps are deterministic.
"""

import json
import os
import tarfile

import numpy as np
import pytest

from cifar10 import evaluation, training
from cifar10.config import RunSettings
from cifar10.data import dataset
from cifar10.runs import checkpoint, run_record
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_multi_gpu_train, cifar10_train
from tests.helpers import events, messages

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'earlier_runs')


@pytest.fixture
def plain_data_dir(tmp_path):
    """100 equal training images of class 3, and 50 test images of random pixels."""
    batches = tmp_path / 'data' / dataset.CIFAR10_DIRECTORY
    batches.mkdir(parents=True)
    record = np.concatenate([[3], np.repeat([200, 90, 30], 1024)]).astype(np.uint8)
    for path in dataset.read(str(tmp_path / 'data')).train.paths:
        np.tile(record, [20, 1]).tofile(path)
    rng = np.random.RandomState(0)
    records = np.concatenate(
        [rng.randint(0, 10, [50, 1]), rng.randint(0, 256, [50, 3072])], 1
    ).astype(np.uint8)
    records.tofile(str(batches / 'test_batch.bin'))
    return str(tmp_path / 'data')


@pytest.mark.parametrize(
    'earlier, script, precision, loss',
    [
        ('version_1.0.0', cifar10_train, '0.100 (5 of 50, step 5)', '4.83'),
        ('version_1.8.0', cifar10_train, '0.060 (3 of 50, step 5)', '1.49'),
        # Its Muon had a weight decay, as later the recipe `best`: it cannot be resumed.
        ('tensorflow_1.15.5', cifar10_multi_gpu_train, '0.200 (10 of 50, step 5)', None),
    ],
)
def test_it_is_evaluated_and_resumed_as_before(
    tmp_path, plain_data_dir, capsys, earlier, script, precision, loss
):
    train_dir = str(tmp_path / 'run')
    with tarfile.open(os.path.join(HERE, earlier, 'run.tar.xz')) as archive:
        archive.extractall(train_dir)
    with open(os.path.join(HERE, earlier, 'expected.json')) as opened:
        expected = json.load(opened)
    evaluator = evaluation.Evaluator(dataset.read(plain_data_dir).test)
    evaluation.evaluate_checkpoints(
        evaluator, [checkpoint.read_latest(train_dir)], str(tmp_path / 'eval')
    )
    assert f': precision @ 1 = {precision}, 95 % interval ' in capsys.readouterr().out
    found = {tag: value for _, tag, value in events.scalars(tmp_path / 'eval')}
    # Newer versions write more, but no weight decay that is 0.
    assert {tag: found.get(tag, 0.0) for tag in expected['evaluation']} == pytest.approx(
        expected['evaluation'], rel=1e-5
    )
    hparams = run_record.read(train_dir).hparams
    settings = RunSettings(max_steps=7, seed=1, eval_every=0)
    job = training.create_job(dataset.read(plain_data_dir), hparams, settings=settings)
    if loss is None:
        complaint = (
            f'^The run in {train_dir} was trained with a weight decay of Muon.*: evaluate it, or '
        )
        with messages.raises(complaint), open_run(train_dir, training.record(job)):
            pass
        return
    with open_run(train_dir, training.record(job)) as run:
        assert not run.notes
        script.train(job, run)
    output = capsys.readouterr().out
    assert messages.resuming(train_dir, 5) in output
    assert f': step 7, loss = {loss} (' in output
    saved = checkpoint.read_latest(train_dir).values
    norms = {name: np.linalg.norm(value.astype(np.float64)) for name, value in saved.items()}
    assert norms == pytest.approx(expected['norms_after_step_7'], rel=1e-5)
    sums = {name: value.sum(dtype=np.float64) for name, value in saved.items()}
    assert sums == pytest.approx(expected['sums_after_step_7'], rel=1e-4, abs=1e-3)
