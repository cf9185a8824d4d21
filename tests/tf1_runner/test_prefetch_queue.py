"""tf.contrib.slim.prefetch_queue; on TensorFlow 1.15 also the original."""

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as tf

from tf1_runner import prefetch_queue

FUNCTIONS = [prefetch_queue.prefetch_queue] + (
    [tensorflow.contrib.slim.prefetch_queue.prefetch_queue]
    if hasattr(tensorflow, 'contrib')
    else []
)


@pytest.fixture(params=FUNCTIONS)
def create(request):
    with tf.Graph().as_default():
        yield request.param


def _dequeue(fetches, times):
    """Return the values of several dequeues, after which the queue is closed."""
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        threads = tf.train.start_queue_runners(sess)
        found = [sess.run(fetches) for _ in range(times)]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(fetches)
        for thread in threads:
            thread.join()
    return found


def test_a_dict(create):
    number = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    tensors = {'square': number * number, 'pair': tf.stack([number, 1])}
    queue = create(tensors, capacity=5, shared_name='shared')
    dequeued = queue.dequeue()
    assert {key: value.shape.as_list() for key, value in dequeued.items()} == {
        'square': [],
        'pair': [2],
    }
    found = _dequeue(dequeued, 3)
    assert [values['square'] for values in found] == [0, 1, 4]
    np.testing.assert_array_equal([values['pair'] for values in found], [[0, 1], [1, 1], [2, 1]])
    assert queue.names == ['pair', 'square']  # the order in all processes that share the queue
    assert queue.queue_ref.op.get_attr('capacity') == 5
    assert queue.queue_ref.op.get_attr('shared_name') == b'shared'


def test_a_list_and_threads(create):
    number = tf.train.range_input_producer(40, num_epochs=1, shuffle=False).dequeue()
    queue = create([number], num_threads=4, name='mine')
    runner = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[-1]
    assert len(runner.enqueue_ops) == 4
    assert sorted(_dequeue(queue.dequeue(), 40)) == list(range(40))
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES, 'mine/')
    assert (queue.name, summary.op.name) == ('mine/fifo_queue', 'mine/fraction_of_8_full')


def test_padding(create):
    length = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    tensors = [length, tf.ones([length])]
    with pytest.raises(ValueError, match='shapes must be fully defined'):
        create(tensors)
    lengths, ones = create(tensors, dynamic_pad=True).dequeue_many(3)
    (found,) = _dequeue([lengths, ones], 1)
    np.testing.assert_array_equal(found[0], [0, 1, 2])
    np.testing.assert_array_equal(found[1], [[0, 0], [1, 0], [1, 1]])
