"""What TensorBoard gets from a training step."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import input as cifar10_input, multi_gpu, summaries
from tests.helpers import events

LAYERS = ['conv1', 'conv2', 'local3', 'local4', 'softmax_linear']


def _summary(num_towers, data_dir):
    """Runs one step without an update; returns the values by tag, and what was fetched with
    them."""
    images, labels = cifar10_input.distorted_inputs(data_dir, 8)
    queue = cifar10_input.prefetch_queue(images, labels, 4)
    batches = [queue.dequeue() for _ in range(num_towers)]
    losses, tower_grads = multi_gpu.tower_gradients(
        ['/cpu:0'] * num_towers, batches, tf.train.GradientDescentOptimizer(0.1)
    )
    gradients = multi_gpu.average_gradients(tower_grads)
    fetches = {
        'images': batches[0][0],
        'losses': losses,
        'gradient': gradients[0][0],
        'weights': gradients[0][1],
        'relu': tf.get_collection(tf.GraphKeys.ACTIVATIONS)[0],
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
    expected = {
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
    }
    for layer in LAYERS:
        expected |= {
            layer + '/activations',
            layer + '/sparsity',
            layer + '/weights',
            layer + '/biases',
            layer + '/weights/gradients',
            layer + '/biases/gradients',
        }
    for num_towers in (1, 2):
        with tf.Graph().as_default():
            assert set(_summary(num_towers, data_dir)[0]) == expected


def test_values_are_those_of_the_step(data_dir):
    values, fetched = _summary(2, data_dir)
    np.testing.assert_allclose(
        values['total_loss'].simple_value, np.mean(fetched['losses']), rtol=1e-6
    )
    assert values['learning_rate'].simple_value == np.float32(0.1)
    parts = ['losses/local3/weight_loss', 'losses/local4/weight_loss', 'losses/cross_entropy']
    np.testing.assert_allclose(
        [values[tag].simple_value for tag in parts],
        np.mean([fetched['parts'][:3], fetched['parts'][3:]], 0),
        rtol=1e-6,
    )
    _assert_histogram_of(values['conv1/weights'].histo, fetched['weights'])
    _assert_histogram_of(values['conv1/weights/gradients'].histo, fetched['gradient'])
    _assert_histogram_of(values['conv1/activations'].histo, fetched['relu'])
    np.testing.assert_allclose(
        values['conv1/sparsity'].simple_value, (fetched['relu'] == 0).mean(), rtol=1e-6
    )
    assert 0 < values['conv1/sparsity'].simple_value < 1


def test_images_are_those_of_the_step(data_dir):
    values, fetched = _summary(1, data_dir)
    for i in range(3):
        shown = _decoded(values['images/image/%d' % i]).astype(np.float64)
        assert np.corrcoef(shown.ravel(), fetched['images'][i].ravel())[0, 1] > 0.999


def _decoded(value):
    with tf.Session() as session:
        return session.run(tf.image.decode_png(value.image.encoded_image_string))


def _drawn(kernels, columns):
    """The picture of filters, drawn one after the other."""
    height, width, _, number = kernels.shape
    rows = -(-number // columns)
    picture = np.full([8 * (rows * (height + 1) + 1), 8 * (columns * (width + 1) + 1), 3], 255)
    scaled = 128 + np.round(127 * (kernels / np.abs(kernels).max()).astype(np.float64))
    for i in range(rows * columns):
        top, left = 8 * (i // columns * (height + 1) + 1), 8 * (i % columns * (width + 1) + 1)
        shown = np.kron(scaled[..., i], np.ones([8, 8, 1])) if i < number else 255  # nothing
        picture[top : top + 8 * height, left : left + 8 * width] = shown
    return picture


def test_the_filters_of_the_first_layer(data_dir):
    values, fetched = _summary(2, data_dir)
    shown, expected = (
        _decoded(values['conv1/filters/image']).astype(int),
        _drawn(fetched['weights'], 8),
    )
    # where the rounding is a matter of float32
    assert shown.shape == (392, 392, 3) and np.abs(shown - expected).max() <= 1
    assert (shown == expected).mean() > 0.999


@pytest.mark.parametrize('number, columns', [(1, 1), (5, 3), (16, 4)])
def test_a_picture_of_other_filters(number, columns):
    """The greatest absolute value gets black or white, in its colour; what is not finite is as grey
    as 0."""
    kernels = np.random.RandomState(number).randint(-127, 128, [3, 2, 3, number]).astype(np.float32)
    kernels[0, 0, 0, 0], kernels[0, 0, 1, 0] = 127, 0
    expected = _drawn(kernels, columns)
    kernels[0, 0, 1, 0] = np.nan
    with tf.Session() as session:
        np.testing.assert_array_equal(
            session.run(summaries.filter_grid(tf.constant(kernels))), expected
        )
        kernels[0, 0, 1, 0] = -np.inf
        np.testing.assert_array_equal(
            session.run(summaries.filter_grid(tf.constant(kernels))), expected
        )
        assert (session.run(summaries.filter_grid(tf.zeros([1, 1, 3, 1])))[8:16, 8:16] == 128).all()


@pytest.mark.parametrize(
    'name, shape',
    [('conv1/weights', [5, 5, 1, 4]), ('conv1/weights', [12, 4]), ('weights', [5, 5, 3, 4])],
)
def test_no_filters_of_another_network(name, shape):
    assert summaries._filters([tf.get_variable(name, shape)]) == []


def test_a_histogram_of_nan():
    with tf.Session() as session:
        histogram = session.run(
            summaries._histogram('tag', tf.constant([1.0, np.nan, -np.inf, 3.0]))
        )
    _assert_histogram_of(
        tf.Summary.FromString(histogram).value[0].histo, np.array([1.0, 0.0, 0.0, 3.0])
    )


def _loss(value):
    return tf.Summary(value=[tf.Summary.Value(tag='loss', simple_value=value)])


def test_a_summary_is_written_immediately(tmp_path):
    with summaries.writer(str(tmp_path)) as write:
        for step in (3, 5):
            write(_loss(step), step)
            assert events.scalars(tmp_path)[-1] == (step, 'loss', step)


def test_the_writer_writes_the_graph(tmp_path):
    tf.constant(1, name='one')
    with summaries.writer(str(tmp_path)):
        pass
    written = [
        tf.GraphDef.FromString(event.graph_def)
        for event in events.read(tmp_path)
        if event.HasField('graph_def')
    ]
    assert [[node.name for node in definition.node] for definition in written] == [['one']]


def test_a_resumed_run_starts_a_session_log(tmp_path):
    """TensorBoard drops what an earlier file has from its step on."""
    with summaries.writer(str(tmp_path), 7):
        pass
    started = [
        event.step
        for event in events.read(tmp_path)
        if event.session_log.status == tf.SessionLog.START
    ]
    assert started == [8]
