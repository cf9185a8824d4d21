"""Names of tf.contrib against NumPy, on TensorFlow 1.15 also the originals."""

import functools
import gzip

import numpy as np
import pytest
import tensorflow
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from tf1_runner import contrib_names

RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.rand(2, 5, 5, 3).astype(np.float32)
INPUTS = RANDOM.rand(4, 2, 3).astype(np.float32)  # [time, batch, features]


def _find_ours(path):
    module, _, name = path.rpartition('.')
    return contrib_names.MODULES[module][name]


def _find_original(path):
    return functools.reduce(getattr, path.split('.'), tensorflow)


@pytest.fixture(params=[_find_ours] + [_find_original] * hasattr(tensorflow, 'contrib'))
def find(request):
    """A function from a path, such as contrib.opt.AdamWOptimizer, to the object."""
    return request.param


def _run(fetches, create=lambda shape: np.broadcast_to(np.arange(shape[-1]) / 10, shape)):
    """Return the values; `create` makes the values of variables, by default 0, 0.1, 0.2, ..."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for variable in tf.trainable_variables():
            variable.load(create(variable.shape.as_list()), session)
        return session.run(fetches)


@pytest.mark.skipif(not hasattr(tensorflow, 'contrib'), reason='needs TensorFlow 1.15')
@pytest.mark.parametrize('module', sorted(set(contrib_names.MODULES) - {'contrib', 'contrib.data'}))
def test_the_names_are_those_of_the_original(module):
    """Except contrib.data, which also has names of versions before 1.15.

    A module below `python` has all names of its package.
    """
    original = _find_original(module.replace('.python.learn', '').partition('.python')[0])
    assert [name for name in contrib_names.MODULES[module] if not hasattr(original, name)] == []


def _skip_without_operation(find):
    if find is _find_ours and not hasattr(tf.raw_ops, 'ImageProjectiveTransformV2'):
        pytest.skip('TensorFlow 1.15 has it only in tf.contrib')


def test_rotation_and_translation(find):
    _skip_without_operation(find)
    rotate, translate = find('contrib.image.rotate'), find('contrib.image.translate')
    by_angle = find('contrib.image.angles_to_projective_transforms')
    half_turn = by_angle(np.pi, 5.0, 5.0)
    turned, one, gray, moved, half = _run(
        [
            rotate(IMAGES, [np.pi / 2, np.pi], 'BILINEAR'),
            rotate(IMAGES[0], np.pi / 2),
            rotate((IMAGES[0, ..., 0] * 255).astype(np.uint8), np.pi / 2),
            translate(IMAGES, [[1, 0], [0, -2]]),
            find('contrib.image.transform')(IMAGES, half_turn, 'BILINEAR'),
        ]
    )
    np.testing.assert_allclose(turned[0], np.rot90(IMAGES[0]), atol=1e-5)
    np.testing.assert_allclose(turned[1], np.rot90(IMAGES[1], 2), atol=1e-5)
    np.testing.assert_array_equal(one, np.rot90(IMAGES[0]))
    np.testing.assert_array_equal(gray, np.rot90((IMAGES[0, ..., 0] * 255).astype(np.uint8)))
    np.testing.assert_array_equal(moved[0, :, 1:], IMAGES[0, :, :-1])
    np.testing.assert_array_equal(moved[1, :-2], IMAGES[1, 2:])
    assert not moved[0, :, 0].any() and not moved[1, -2:].any()
    np.testing.assert_allclose(half, IMAGES[:, ::-1, ::-1], atol=1e-5)


def test_a_projective_transform_to_another_size(find):
    _skip_without_operation(find)
    transform = [1, 0, 1, 0, 1, 2, 0, 0]  # (x, y) -> (x + 1, y + 2)
    (found,) = _run([find('contrib.image.transform')(IMAGES, transform, output_shape=[3, 4])])
    np.testing.assert_array_equal(found, IMAGES[:, 2:, 1:])


def test_a_layer_after_a_cell(find):
    cell = find('contrib.rnn.BasicRNNCell')(4)
    wrapped = find('contrib.rnn.OutputProjectionWrapper')(cell, 3, tf.nn.relu)
    outputs, state = tf.nn.dynamic_rnn(
        wrapped, tf.constant(INPUTS), dtype=tf.float32, time_major=True
    )
    projected, hidden = _run([outputs, state])
    names = {variable.op.name for variable in tf.global_variables()}
    assert {'rnn/output_projection_wrapper/kernel', 'rnn/output_projection_wrapper/bias'} < names
    expected = (hidden.sum(1)[:, None] + 1) * [0, 0.1, 0.2]
    np.testing.assert_allclose(projected[-1], expected, 1e-5)


def test_a_layer_before_a_cell(find):
    wrap = find('contrib.rnn.InputProjectionWrapper')
    cell = wrap(find('contrib.rnn.BasicRNNCell')(2), 3, tf.tanh)
    _, state = tf.nn.static_rnn(cell, [tf.constant(INPUTS[0])], dtype=tf.float32)
    projected = np.tanh((INPUTS[0].sum(1)[:, None] + 1) * [0, 0.1, 0.2])
    expected = np.tanh((projected.sum(1)[:, None] + 1) * [0, 0.1])
    np.testing.assert_allclose(_run(state), expected, 1e-5)


def test_an_embedding_before_a_cell(find):
    wrap = find('contrib.rnn.EmbeddingWrapper')
    cell = wrap(find('contrib.rnn.BasicRNNCell')(2), 3, 4)
    _, state = tf.nn.static_rnn(cell, [tf.constant([0, 2])], dtype=tf.float32)
    # Each row is 0, 0.1, 0.2, 0.3.
    np.testing.assert_allclose(_run(state), np.tanh([[0, 0.6 * 0.1 + 0.1]] * 2), 1e-5)
    shapes = {variable.op.name: variable.shape for variable in tf.global_variables()}
    assert shapes['rnn/embedding_wrapper/embedding'] == [3, 4]


def test_lstm_block_cell(find):
    block = find('contrib.rnn.LSTMBlockCell')(4, 0.5, 0.3)
    outputs, _ = tf.nn.dynamic_rnn(block, tf.constant(INPUTS), dtype=tf.float32, time_major=True)
    found = _run(outputs)
    names = [variable.op.name for variable in tf.global_variables()]
    assert names == ['rnn/lstm_cell/kernel', 'rnn/lstm_cell/bias']

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    hidden = cells = np.zeros([2, 4])
    for step in range(4):
        gates = np.hstack([INPUTS[step], hidden]).sum(1)[:, None] + np.ones(16)
        i, j, f, o = np.split(gates * np.arange(16) / 10, 4, axis=1)
        cells = np.clip(sigmoid(f + 0.5) * cells + sigmoid(i) * np.tanh(j), -0.3, 0.3)
        hidden = sigmoid(o) * np.tanh(cells)
        np.testing.assert_allclose(found[step], hidden, 1e-5)


def test_decoders(find):
    decode = find('contrib.legacy_seq2seq.rnn_decoder')
    cell = find('contrib.rnn.BasicRNNCell')(3)
    outputs, state = decode(
        [tf.constant(INPUTS[0])] * 3, tf.zeros([2, 3]), cell, lambda output, step: output * step
    )
    values, last = _run([outputs, state])
    x, hidden = INPUTS[0], np.zeros([2, 3])
    for step in range(3):
        hidden = np.tanh((x.sum(1) + hidden.sum(1) + 1)[:, None] * [0, 0.1, 0.2])
        np.testing.assert_allclose(values[step], hidden, 1e-5)
        x = hidden * (step + 1)
    np.testing.assert_array_equal(values[-1], last)
    names = [variable.op.name for variable in tf.global_variables()]
    assert names == ['rnn_decoder/basic_rnn_cell/kernel', 'rnn_decoder/basic_rnn_cell/bias']


def test_tables(find):
    keys = tf.constant(['cat', 'dog'])
    initializer = find('contrib.lookup.KeyValueTensorInitializer')(keys, tf.constant([7, 8]))
    table = find('contrib.lookup.HashTable')(initializer, -1)
    words = tf.constant(['dog', 'cow'])
    ids = find('contrib.lookup.index_table_from_tensor')(keys, num_oov_buckets=2).lookup(words)
    with tf.Session() as session:
        session.run([table.init, tf.tables_initializer()])
        found, ids = session.run([table.lookup(words), ids])
    assert found.tolist() == [8, -1]
    assert ids[0] == 1 and ids[1] in (2, 3)


def test_the_file_of_the_projector(find, tmp_path):
    config = find('contrib.tensorboard.plugins.projector.ProjectorConfig')()
    config.embeddings.add(tensor_name='words', metadata_path='words.tsv')
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        find('contrib.tensorboard.plugins.projector.visualize_embeddings')(
            summary_writer=writer, config=config
        )
    assert 'tensor_name: "words"' in (tmp_path / 'projector_config.pbtxt').read_text()


def test_padded_batches(find):
    data = tf.data.Dataset.range(5).map(lambda i: tf.range(i))
    batch = find('contrib.data.padded_batch_and_drop_remainder')(2, [None])
    padded = data.apply(batch).make_one_shot_iterator().get_next()
    np.testing.assert_array_equal(_run(padded), [[0], [0]])


def test_csv_files_and_labels(find, tmp_path):
    base = 'contrib.learn.datasets.base.'
    (tmp_path / 'with').write_text('2,3,a,b\n1.5,2,3,0\n4,5,6,1\n')
    (tmp_path / 'without').write_text('0,1.5,2,3\n1,4,5,6\n')
    paths = str(tmp_path / 'with'), str(tmp_path / 'without')
    load, load_without = find(base + 'load_csv_with_header'), find(base + 'load_csv_without_header')
    for found in (
        load(filename=paths[0], target_dtype=np.int32, features_dtype=np.float32),
        load_without(paths[1], np.int32, np.float32, target_column=0),
    ):
        np.testing.assert_array_equal(found.data, np.array([[1.5, 2, 3], [4, 5, 6]], np.float32))
        assert found.target.tolist() == [0, 1] and found.target.dtype == np.int32
    labels = tmp_path / 'labels.gz'
    labels.write_bytes(gzip.compress(b'\0\0\x08\x01\0\0\0\x03\x02\x00\x01'))
    with open(str(labels), 'rb') as file:
        found = find('contrib.learn.datasets.mnist.extract_labels')(file, one_hot=True)
    np.testing.assert_array_equal(found, np.eye(10)[[2, 0, 1]])


def test_a_data_set_that_is_gone():
    with pytest.raises(UserError, match="not 'iris': use sklearn.datasets.load_iris"):
        _find_ours('contrib.learn.datasets.load_dataset')('iris')
