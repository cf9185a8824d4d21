"""Hidden GPUs, small data sets, one graph per test, cleanup of processes, markers."""

import dataclasses
import gc
import os
import signal

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation, training
from cifar10.config import CLASSIC, FAST, RunSettings
from cifar10.data import dataset
from cifar10.runs import checkpoint
from cifar10.runs.run import open_run
from cifar10.scripts import cifar10_multi_gpu_train
from cifar10.system import machine, signals
from tests.helpers import clusters, data_sets, programs, small_run

machine.set_up_tensorflow()
gc.freeze()  # Else each garbage collection would look through all modules.
# A shell that runs the tests in the background ignores SIGINT, and nohup SIGHUP. Child processes
# would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The hyperparameters of the fixture `runs`.
RUNS = {'classic': CLASSIC, 'fast': dataclasses.replace(FAST, batch_size=8)}


def pytest_configure(config):
    config.addinivalue_line(
        'markers', 'slow: whole runs of the scripts; -m "not slow" leaves them out'
    )
    config.addinivalue_line('markers', 'long: minutes each; only -m long runs them')
    config.addinivalue_line(
        'markers', 'gpu: need a GPU; run by -m gpu, in a process without other tests'
    )
    config.addinivalue_line(
        'markers', 'machine: compare this machine with NumPy; -m machine includes its GPUs'
    )


def pytest_collection_modifyitems(config, items):
    if 'long' not in config.getoption('markexpr'):
        chosen = [item for item in items if not item.get_closest_marker('long')]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.fixture(scope='session', autouse=True)
def original_environment(request):
    """Hide the GPUs, unless all tests are marked `gpu` or `machine`; return the environment that
    shows them.

    TensorFlow looks for them once per process, at the first session. Child processes inherit the
    variable. The workers of xdist do not: the process that starts them runs no fixture.
    """
    original = dict(os.environ)
    if not all(
        item.get_closest_marker('gpu') or item.get_closest_marker('machine')
        for item in request.session.items
    ):
        os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
    return original


@pytest.fixture(scope='session')
def data_dir(tmp_path_factory):
    """A read-only data set: five training files of 60 records, 50 test records."""
    return data_sets.write(tmp_path_factory.mktemp('data'))


@pytest.fixture
def own_data_dir(tmp_path):
    """The same data set for one test, which may damage it."""
    return data_sets.write(tmp_path / 'data')


@pytest.fixture(autouse=True)
def graph():
    """A new graph for each test."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(autouse=True)
def signals_stay():
    """Restore blocked and ignored signals, which child processes inherit."""
    handlers = {number: signal.getsignal(number) for number in signals.STOP_SIGNALS}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    for number, handler in handlers.items():
        if handler is not None:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@pytest.fixture(autouse=True)
def no_process_stays():
    """End the processes that a test has started."""
    yield
    clusters.end_all()
    programs.end_all()


@pytest.fixture(scope='session')
def runs(tmp_path_factory, data_dir):
    """A directory with runs: 'classic' has one variable; step 2 of 'fast' is traced; an
    evaluation."""
    parent, data = tmp_path_factory.mktemp('runs'), dataset.read(data_dir)
    small_run.train(parent / 'classic', data_dir, 2, hparams=RUNS['classic'])
    job = training.create_job(
        data,
        RUNS['fast'],
        ['/cpu:0', '/cpu:1'],
        RunSettings(max_steps=3, save_summaries_steps=1, profile_step=2, eval_every=2),
    )
    with open_run(str(parent / 'fast'), training.record(job)) as run:
        cifar10_multi_gpu_train.train(job, run)
    last = checkpoint.read_latest(str(parent / 'fast'))
    evaluation.evaluate_checkpoints(evaluation.Evaluator(data.test), [last], str(parent / 'eval'))
    return parent
