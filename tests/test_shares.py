"""Shards of the examples for several workers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib, training
from cifar10.config import RunSettings
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.input import InputSettings, Shard
from tests.helpers import data_sets, oracle, queues


def _epoch(paths, *shard):
    """Return one epoch of a shard, uint8 [n, 3073]."""
    with tf.Graph().as_default(), tf.Session() as session:
        filenames = tf.train.string_input_producer(paths, shuffle=False, num_epochs=1)
        read = input_lib._read_records(filenames, data_sets.records(paths), *shard)
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        runners = tf.train.start_queue_runners(session, coord)
        parts = []
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                parts.append(session.run(read))
        coord.request_stop()
        coord.join(runners)
    assert max(map(len, parts)) <= 256
    return np.concatenate(parts)


@pytest.mark.parametrize('lengths, count', [((13, 8), 3), ((300, 257), 2), ((84, 42), 7)])
def test_all_shares_together_have_each_record_once(tmp_path, lengths, count):
    records = np.random.RandomState(6).randint(0, 256, [sum(lengths), 3073]).astype(np.uint8)
    paths = [str(tmp_path / str(i)) for i in range(len(lengths))]
    for path, part in zip(paths, np.split(records, np.cumsum(lengths)[:-1])):
        part.tofile(path)
    shards = [_epoch(paths, Shard(index, count)) for index in range(count)]
    assert sorted(record.tobytes() for shard in shards for record in shard) == sorted(
        record.tobytes() for record in records
    )
    np.testing.assert_array_equal(_epoch(paths), records)
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= (
        0 if all(length % count == 0 for length in lengths) else len(lengths)
    )


def test_too_few_examples(tmp_path):
    paths = [str(tmp_path / name) for name in 'ab']
    for path, length in zip(paths, (7, 6)):
        np.zeros([length, 3073], np.uint8).tofile(path)
    with pytest.raises(
        UserError, match='/b has 6 examples, too few for 7 workers: start fewer workers'
    ):
        _epoch(paths, Shard(0, 7))
    assert len(_epoch(paths, Shard(0, 6))) == 3


def test_a_shuffle_queue_for_each_share(data_dir):
    """The queue keeps 40 % of the shard's records."""
    input_lib.distorted_inputs(data_dir, 4, settings=InputSettings(shard=Shard(1, 6)))
    assert tf.get_collection(input_lib.SHUFFLE_QUEUE_MIN) == [300 // 6 * 4 // 10]


def _order(data_dir, worker):
    """Return the indices, in the files of 300 images, that one worker of two draws."""
    paths = dataset.read(data_dir).train.paths
    known = {image.tobytes(): i for i, image in enumerate(oracle.read_records(paths)[1])}
    with tf.Graph().as_default():
        training.set_seed(RunSettings(seed=3), 0, worker)
        _, images = input_lib.shuffled_records(
            data_sets.records(paths),
            150,
            50,
            InputSettings(deterministic=True, shard=Shard(worker % 2, 2)),
        )
        batches = queues.run(tf.transpose(images, [0, 2, 3, 1]), 6)
    return [known[image.tobytes()] for batch in batches for image in batch]


def test_each_worker_has_an_order_of_its_own(data_dir):
    """Workers 0 and 2 read the same shard, only in this test, to compare their orders."""
    first, again, second, third = [_order(data_dir, worker) for worker in (0, 0, 1, 2)]
    assert first == again != third and set(first) == set(third)
    assert not set(first) & set(second) and len(set(first) | set(second)) == 300
    # a block has 30 records
    assert [place % 30 for place in first] != [place % 30 for place in second]
