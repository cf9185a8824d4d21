"""Sessions with queue runners."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib
from tests.helpers import data_sets


def run(fetches, times):
    """Start the queue runners; return the values of `times` runs of `fetches`."""
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        values = [session.run(fetches) for _ in range(times)]
        coord.request_stop()
        coord.join(threads)
    return values


def epoch(paths, *shard):
    """Return one epoch of input._read_records, uint8 [n, 3073]."""
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
