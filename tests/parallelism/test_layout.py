"""The bytes between devices that the plan tells, against the graphs into which TensorFlow parts a
step of training."""

from unittest import mock

import pytest

from cifar10 import training
from cifar10.data import dataset
from cifar10.hparams import CLASSIC, FAST
from cifar10.parallelism import layout
from cifar10.runs import run_directory
from scripts import cifar10_multi_gpu_train
from tests.helpers.parted_graphs import PartedGraphs

RECIPES = {'classic': CLASSIC, 'fast': FAST._replace(epochs=100.0)}
PLACEMENTS = [(4, 2, 'first_device'), (3, 1, 'spread')]
MORE = [(4, 2, 'cpu'), (4, 2, 'spread'), (2, 2, 'spread'), (2, 1, 'cpu'), (5, 5, 'first_device')]
SLOW, LONG = pytest.mark.slow, pytest.mark.long


def _transfers(job, train_dir):
    """Trains by the script for a step, with all its hooks; returns what was sent, see PartedGraphs,
    with names like '/cpu:0'."""
    parted, run = PartedGraphs(), training.run

    def with_hook(graph, job, directory):
        return run(graph, job, directory, job.session._replace(hooks=[parted]))

    with mock.patch.object(training, 'run', with_hook), run_directory.held(
        train_dir, False, job
    ) as directory:
        cifar10_multi_gpu_train.train(job, directory)
    return {
        tuple('/cpu:' + end.rpartition(':')[2] for end in arrow): sent
        for arrow, sent in parted.transfers().items()
    }


@pytest.mark.parametrize(
    'num_devices, devices_per_tower, strategy, recipe',
    [placement + ('classic',) for placement in PLACEMENTS]
    + [pytest.param(*placement, 'classic', marks=SLOW) for placement in MORE]
    + [pytest.param(*placement, 'fast', marks=SLOW) for placement in PLACEMENTS]
    + [pytest.param(*placement, 'fast', marks=LONG) for placement in MORE],
)
def test_the_plan_tells_what_training_transfers(
    tmp_path, data_dir, num_devices, devices_per_tower, strategy, recipe
):
    job = training.Job(
        dataset.read(data_dir),
        300,
        RECIPES[recipe]._replace(batch_size=16),
        ['/cpu:%d' % i for i in range(num_devices)],
        max_steps=1,
        devices_per_tower=devices_per_tower,
        variable_strategy=strategy,
    )
    transfers = _transfers(job, str(tmp_path / 'run'))
    tensors = {
        arrow: sum(size for count, size in sent if count > 1) for arrow, sent in transfers.items()
    }
    assert layout.of_step(job).sent == {arrow: size for arrow, size in tensors.items() if size}
    assert bool(tensors) == (num_devices > 1)
    numbers = [size for sent in transfers.values() for count, size in sent if count == 1]
    assert sum(numbers) < 1000  # losses, norms, rates: too little to be told


def test_the_transfers_of_two_devices():
    """Counted by hand: images and labels are on the first device, where the convolutions and the
    variables are too."""
    job = training.Job(
        dataset.read(''),
        300,
        CLASSIC._replace(batch_size=16),
        ['/gpu:0', '/gpu:1'],
        devices_per_tower=2,
        variable_strategy='first_device',
    )
    fully_connected = 4 * (2304 * 384 + 384 + 384 * 192 + 192 + 192 * 10 + 10)
    activations, images, labels = 4 * 16 * 2304, 4 * 16 * 24 * 24 * 3, 4 * 16
    assert layout.of_step(job) == layout.Layout(
        {'/gpu:0': 4 * 1068298},
        {
            ('/cpu:0', '/gpu:0'): images,
            ('/cpu:0', '/gpu:1'): labels,
            ('/gpu:0', '/gpu:1'): fully_connected + activations,
            ('/gpu:1', '/gpu:0'): fully_connected + activations,
        },
    )


def test_variables_cross_once_per_tower():
    """On a GPU each is used several times, by a product, the weight decay and their gradients."""
    job = training.Job(dataset.read(''), 300, CLASSIC, ['/gpu:0', '/gpu:1'])
    images, labels = 4 * 128 * 24 * 24 * 3, 4 * 128
    assert layout.of_step(job) == layout.Layout(
        {'/cpu:0': 4 * 1068298},
        dict(
            [(('/cpu:0', '/gpu:%d' % i), 4 * 1068298 + images + labels) for i in range(2)]
            + [(('/gpu:%d' % i, '/cpu:0'), 4 * 1068298) for i in range(2)]
        ),
    )
