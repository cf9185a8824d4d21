"""tf.contrib.slim.prefetch_queue."""

import tensorflow.compat.v1 as tf


def prefetch_queue(
    tensors, capacity=8, num_threads=1, dynamic_pad=False, shared_name=None, name=None
):
    """Return a queue of tensors, filled by a queue runner; its fill is a summary.

    Args:
      tensors: list or dict of tensors. `dequeue()` returns such a list or dict.
      capacity: elements of the queue.
      num_threads: threads that fill the queue.
      dynamic_pad: True to allow shapes with unknown sizes. `dequeue_many` pads them with zeros.
      shared_name: if set, sessions share the queue of this name.
      name: name scope of the operations.

    Raises:
      ValueError: a shape has unknown sizes, and `dynamic_pad` is False.
    """
    names = sorted(tensors) if isinstance(tensors, dict) else None
    values = [tensors[key] for key in names] if names else tensors
    create = tf.PaddingFIFOQueue if dynamic_pad else tf.FIFOQueue
    with tf.name_scope(name, 'prefetch_queue', values):
        queue = create(
            capacity,
            [value.dtype for value in values],
            [value.shape for value in values],
            names=names,
            shared_name=shared_name,
        )
        enqueue_ops = [queue.enqueue(tensors)] * num_threads
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, enqueue_ops))
        fill = tf.cast(queue.size(), tf.float32) * (1 / capacity)
        tf.summary.scalar(f'fraction_of_{capacity}_full', fill)
    return queue
