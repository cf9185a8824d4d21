"""Runs whose event files TensorBoard reads."""

import pytest

from cifar10 import evaluation
from cifar10.config import CLASSIC, FAST, Intervals
from cifar10.data import dataset
from cifar10.runs import checkpoint, run_directory
from cifar10.training import Job
from scripts import cifar10_multi_gpu_train
from tests.helpers import small_run

HPARAMS = {'classic': CLASSIC, 'fast': FAST._replace(batch_size=8)}


@pytest.fixture(scope='package')
def runs(tmp_path_factory, data_dir):
    """A directory with the runs 'classic', of one variable, and 'fast', whose step 2 is traced, and
    an evaluation."""
    parent, data = tmp_path_factory.mktemp('runs'), dataset.read(data_dir)
    small_run.train(parent / 'classic', data_dir, 2, hparams=HPARAMS['classic'], num_examples=300)
    job = Job(
        data,
        300,
        HPARAMS['fast'],
        ['/cpu:0', '/cpu:1'],
        max_steps=3,
        intervals=Intervals(summary_steps=1, profile_step=2, eval_steps=2),
    )
    with run_directory.held(str(parent / 'fast'), False, job) as run:
        cifar10_multi_gpu_train.train(job, run)
    last = checkpoint.read_latest(str(parent / 'fast'))
    evaluation.evaluate(evaluation.Evaluator(data.test), [last], str(parent / 'eval'))
    return parent
