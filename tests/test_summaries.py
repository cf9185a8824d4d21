"""Summaries of a training step."""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import input as input_lib, multi_gpu, summaries
from cifar10.network import Network

LAYERS = ['conv1', 'conv2', 'local3', 'local4', 'softmax_linear']
KINDS = ['activations', 'sparsity', 'weights', 'biases', 'weights/gradients', 'biases/gradients']


def _summary(num_towers, data_dir, num_sub_batches):
    """Run one step without an update; return the values by tag, and the fetched values."""
    images, labels = input_lib.distorted_inputs(data_dir, 40)
    queue = input_lib.prefetch_queue(images, labels, 4)
    batches = [queue.dequeue() for _ in range(num_towers)]
    losses, tower_grads = multi_gpu.tower_gradients(
        ['/cpu:0'] * num_towers,
        batches,
        tf.train.GradientDescentOptimizer(0.1),
        Network(num_sub_batches=num_sub_batches),
    )
    gradients = multi_gpu.average_gradients(tower_grads)
    fetches = {
        'images': batches[0][0],
        'losses': losses,
        'gradient': gradients[0][0],
        'weights': gradients[0][1],
        'relu': tf.get_collection(tf.GraphKeys.ACTIVATIONS)[0][:16],
        'parts': tf.get_collection('losses'),
        'summary': summaries.training(batches[0][0], losses, tf.constant(0.1), gradients),
    }
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()
        runners = tf.train.start_queue_runners(session, coord)
        fetched = session.run(fetches)
        coord.request_stop()
        coord.join(runners)
    return {value.tag: value for value in tf.Summary.FromString(fetched['summary']).value}, fetched


def _assert_histogram_of(histogram, values):
    assert histogram.num == values.size
    np.testing.assert_allclose(
        [histogram.min, histogram.max, histogram.sum],
        [values.min(), values.max(), values.astype(np.float64).sum()],
        rtol=1e-3,
        atol=1e-5,
    )


def test_tags_without_tower_and_number(data_dir):
    for num_towers, num_sub_batches in [(1, 1), (2, 3)]:
        with tf.Graph().as_default():
            assert set(_summary(num_towers, data_dir, num_sub_batches)[0]) == {
                'learning_rate',
                'total_loss',
                'losses/cross_entropy',
                'losses/local3/weight_loss',
                'losses/local4/weight_loss',
                'shuffle_queue/fill',
                'prefetch_queue/fill',
                'images/image/0',
                'images/image/1',
                'images/image/2',
                'conv1/filters/image',
                *(layer + '/' + kind for layer in LAYERS for kind in KINDS),
            }


def test_values_are_those_of_the_step(data_dir):
    values, fetched = _summary(2, data_dir, 3)
    parts = ['losses/local3/weight_loss', 'losses/local4/weight_loss', 'losses/cross_entropy']
    expected = dict(
        zip(parts, np.mean([fetched['parts'][:3], fetched['parts'][3:]], 0)),
        total_loss=np.mean(fetched['losses']),
        learning_rate=0.1,
        **{'conv1/sparsity': (fetched['relu'] == 0).mean()},
    )
    for tag, value in expected.items():
        np.testing.assert_allclose(values[tag].simple_value, value, rtol=1e-6, err_msg=tag)
    assert 0 < values['conv1/sparsity'].simple_value < 1
    for tag, name in [('', 'weights'), ('/gradients', 'gradient')]:
        _assert_histogram_of(values['conv1/weights' + tag].histo, fetched[name])
    _assert_histogram_of(values['conv1/activations'].histo, fetched['relu'])
    for i in range(3):
        shown = _decoded(values[f'images/image/{i}']).ravel()
        assert np.corrcoef(shown, fetched['images'][i].ravel())[0, 1] > 0.999
    with tf.Session() as session:
        grid = session.run(summaries.filter_grid(tf.constant(fetched['weights'])))
    np.testing.assert_array_equal(_decoded(values['conv1/filters/image']), grid)


def _decoded(value):
    with tf.Session() as session:
        return session.run(tf.image.decode_png(value.image.encoded_image_string))


def test_filters_in_a_grid():
    """Five filters of 3 x 2 weights in two rows of three; the greatest absolute value is 127."""
    kernels = np.random.RandomState(0).randint(-126, 127, [3, 2, 3, 5]).astype(np.float32)
    kernels[0, 0, 0, 0] = -127
    with tf.Session() as session:
        grid = session.run(summaries.filter_grid(tf.constant(kernels)))
    assert grid.shape == (8 * 2 * 4, 8 * 3 * 3, 3)
    for i in range(6):
        tile = grid[i // 3 * 32 : i // 3 * 32 + 32, i % 3 * 24 : i % 3 * 24 + 24]
        assert (tile[:8] == 255).all() and (tile[:, :8] == 255).all()
        expected = np.kron(128 + kernels[..., i], np.ones([8, 8, 1])) if i < 5 else 255
        np.testing.assert_array_equal(tile[8:, 8:], expected)


def test_a_histogram_of_nan():
    with tf.Session() as session:
        histogram = session.run(
            summaries._histogram('tag', tf.constant([1.0, np.nan, -np.inf, 3.0]))
        )
    _assert_histogram_of(
        tf.Summary.FromString(histogram).value[0].histo, np.array([1.0, 0.0, 0.0, 3.0])
    )
