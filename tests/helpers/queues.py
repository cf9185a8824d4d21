"""Sessions with queue runners."""

import tensorflow.compat.v1 as tf


def run(fetches, times):
    """Start the queue runners; return the values of `times` runs of `fetches`."""
    with tf.Session() as session:
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        values = [session.run(fetches) for _ in range(times)]
        coord.request_stop()
        coord.join(threads)
    return values
