# Calls what TensorFlow 0.7 to 0.12 had under other names or with other arguments, and compares the results with NumPy.
import os

import numpy as np
import tensorflow as tf

RANDOM = np.random.RandomState(0)
MATRICES = RANDOM.normal(size=[2, 3, 3])
POSITIVE = np.matmul(MATRICES, MATRICES.transpose(0, 2, 1)) + np.eye(3)
RIGHT = RANDOM.normal(size=[2, 3, 1])
CASES = []


def check(tensor, expected):
    CASES.append((tensor, expected))


def batches():
    solved = np.linalg.solve(POSITIVE, RIGHT)
    lower = np.linalg.cholesky(POSITIVE)
    diagonals = POSITIVE[:, range(3), range(3)]
    signal = MATRICES.astype(np.complex64)
    check(tf.batch_cholesky(POSITIVE), lower)
    check(tf.batch_cholesky_solve(lower, RIGHT), solved)
    check(tf.batch_fft(signal), np.fft.fft(signal))
    check(tf.batch_ifft2d(signal), np.fft.ifft2(signal))
    check(tf.batch_fft3d(signal), np.fft.fftn(signal))
    check(tf.batch_matmul(MATRICES, POSITIVE), np.matmul(MATRICES, POSITIVE))
    check(tf.batch_matmul(MATRICES, POSITIVE, True, adj_y=True), np.matmul(MATRICES.transpose(0, 2, 1), POSITIVE))
    check(tf.batch_matmul(x=MATRICES, y=RIGHT), np.matmul(MATRICES, RIGHT))
    check(tf.batch_matrix_band_part(POSITIVE, -1, 0), np.tril(POSITIVE))
    check(tf.batch_matrix_determinant(POSITIVE), np.linalg.det(POSITIVE))
    check(tf.batch_matrix_diag_part(tf.batch_matrix_diag(diagonals)), diagonals)
    check(tf.batch_matrix_diag_part(tf.batch_matrix_set_diag(MATRICES, diagonals)), diagonals)
    check(tf.batch_matrix_inverse(POSITIVE), np.linalg.inv(POSITIVE))
    check(tf.batch_matrix_solve(POSITIVE, RIGHT), solved)
    check(tf.batch_matrix_solve_ls(POSITIVE, RIGHT), solved)
    check(tf.batch_matrix_transpose(MATRICES), MATRICES.transpose(0, 2, 1))
    check(tf.batch_matrix_triangular_solve(lower, RIGHT, lower=True), np.linalg.solve(lower, RIGHT))
    eig = tf.batch_self_adjoint_eig(POSITIVE)
    check(eig[:, 0], np.linalg.eigvalsh(POSITIVE))
    check(tf.batch_matmul(POSITIVE, eig[:, 1:]) - eig[:, 1:] * eig[:, :1], np.zeros([2, 3, 3]))


def orders():
    a, b = RANDOM.normal(size=[2, 4]), RANDOM.normal(size=[2, 4])
    one = tf.constant(1)
    both = np.concatenate([a, b], 1)
    check(tf.concat(1, [a, b]), both)
    check(tf.concat(one, [a, b]), both)
    check(tf.concat(tf.placeholder_with_default(1, None), [a, b]), both)
    check(tf.concat(concat_dim=1, values=[a, b]), both)
    check(tf.concat([a, b], 1), both)
    check(tf.concat_v2([a, b], one), both)
    for parts in (
        tf.split(1, 2, both),
        tf.split(one, 2, both),
        tf.split(split_dim=1, num_split=2, value=both),
        tf.split(both, 2, 1),
        tf.split(both, [4, 4], one),
        tf.split_v(both, [4, 4], 1),
        tf.split_v(value=both, size_splits=[4, 4], split_dim=1),
    ):
        check(parts[0], a)
        check(parts[1], b)
    sparse = tf.SparseTensor(indices=[[0, 1], [1, 3]], values=[5, 6], shape=[2, 4])
    for part in (tf.sparse_split(1, 2, sparse), tf.sparse_split(split_dim=1, num_split=2, sp_input=sparse)):
        check(tf.sparse_tensor_to_dense(part[1]), [[0, 0], [0, 6]])
    assert tf.SparseTensorValue([[0]], [1], shape=[3]).shape == [3]
    for dims in ([False, True], np.array([False, True]), tf.constant([False, True]), [1]):
        check(tf.reverse(a, dims), a[:, ::-1])
    check(tf.reverse(tensor=a, dims=[True, False]), a[::-1])
    check(tf.select(a > 0, t=a, e=b), np.where(a > 0, a, b))
    check(tf.listdiff([1, 2, 3, 4], [2, 4], out_idx=tf.int64)[0], [1, 3])
    check(tf.list_diff([1, 2], [2])[0], [1])
    check(tf.complex_abs(tf.complex(a, b)), np.hypot(a, b))
    check(tf.unpack(tf.pack([a, b]))[1], b)
    check(tf.inv(tf.neg(tf.mul(a, tf.sub(a, b)))), -1 / (a * (a - b)))
    array = tf.TensorArray(tf.float64, 2).unpack(a)
    check(array.pack(), a)
    check(tf.zeros_initializer([2, 3]), np.zeros([2, 3]))
    check(tf.ones_initializer((2,), tf.int32), [1, 1])
    check(tf.get_variable('zeros', [3], initializer=tf.zeros_initializer), [0, 0, 0])
    check(tf.get_variable('ones', [2], initializer=tf.ones_initializer(tf.float64)), [1, 1])


def images_and_losses():
    image = RANDOM.normal(size=[1, 2, 3, 1])
    double, nearest = image.repeat(2, 1).repeat(2, 2), tf.image.ResizeMethod.NEAREST_NEIGHBOR
    for resized in (
        tf.image.resize_images(image, 4, 6, nearest),
        tf.image.resize_images(image, tf.constant(4), tf.constant(6), method=nearest),
        tf.image.resize_images(image, new_height=4, new_width=6, method=nearest),
        tf.image.resize_images(image, 4, new_width=6, method=nearest),
        tf.image.resize_images(image, [4, 6], nearest),
    ):
        check(resized, double)
    check(tf.image.per_image_whitening(image[0]), (image[0] - image.mean()) / image.std())
    check(tf.image.saturate_cast(tf.constant([300, -5]), tf.uint8), [255, 0])
    logits, labels = RANDOM.normal(size=[4, 3]), np.eye(3)[[0, 2, 1, 2]]
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    check(tf.nn.softmax(logits, 'probabilities'), np.exp(log_p))
    check(tf.nn.softmax_cross_entropy_with_logits(logits, labels), -(labels * log_p).sum(1))
    check(tf.nn.sparse_softmax_cross_entropy_with_logits(logits, [0, 2, 1, 2]), -(labels * log_p).sum(1))
    entropy = np.log(1 + np.exp(logits)) - labels * logits
    check(tf.nn.sigmoid_cross_entropy_with_logits(logits, labels), entropy)
    check(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, targets=labels), entropy)
    weights, biases, inputs = [tf.constant(RANDOM.normal(size=shape)) for shape in ([5, 3], [5], [2, 3])]
    classes = tf.constant([[1], [4]], tf.int64)
    sampled = [tf.constant(value) for value in ([0, 2], [[0.5], [0.25]], [0.5, 0.25])]
    sampled = (tf.to_int64(sampled[0]), tf.to_double(sampled[1]), tf.to_double(sampled[2]))
    # The classes and their expected counts, of the labels and of the sample, give the logits.
    all_logits = tf.matmul(inputs, weights, transpose_b=True) + biases
    true = tf.gather_nd(all_logits, [[0, 1], [1, 4]])[:, None] - tf.log(sampled[1])
    both = tf.concat([true, tf.gather(all_logits, [0, 2], axis=1) - tf.log(sampled[2])], 1)
    expected = {
        tf.nn.nce_loss: tf.reduce_sum(tf.nn.softplus(both * [-1.0, 1, 1]), 1),
        tf.nn.sampled_softmax_loss: -tf.nn.log_softmax(both)[:, 0],
    }
    for loss, value in expected.items():
        others = {'num_sampled': 2, 'num_classes': 5, 'sampled_values': sampled, 'remove_accidental_hits': False}
        check(loss(weights, biases, inputs, classes, **others) - value, [0, 0])
        check(loss(weights, biases, classes, inputs, **others) - value, [0, 0])
    steps = tf.constant(RANDOM.normal(size=[1, 1, 3]).astype(np.float32))
    target = tf.SparseTensor([[0, 0]], [1], [1, 1])
    for loss in (tf.nn.ctc_loss(steps, target, [1]), tf.nn.ctc_loss(target, steps, [1])):
        check(loss + tf.nn.log_softmax(steps)[0, :, 1], [0])


def cells_and_queues():
    cells = tf.nn.rnn_cell
    inputs = [tf.ones([2, 4])] * 3
    for i, cell in enumerate([
        cells.BasicRNNCell(5, input_size=4),
        cells.GRUCell(5, 4),
        cells.BasicLSTMCell(5, 1.0, 4, False),
        cells.LSTMCell(5, 4, True),
    ]):
        with tf.variable_scope('cell_%d' % i):
            outputs, state = tf.nn.rnn(cell, inputs, dtype=tf.float32)
            assert len(outputs) == 3 and outputs[0].shape == [2, 5]
            assert i != 2 or state.shape == [2, 10]  # state_is_tuple=False
    assert 'cell_3/rnn/lstm_cell/w_f_diag' in [v.op.name for v in tf.global_variables()]  # use_peepholes=True
    outputs = tf.nn.bidirectional_rnn(cells.GRUCell(2), cells.GRUCell(3), inputs, dtype=tf.float32)[0]
    assert outputs[0].shape == [2, 5]
    shuffled = {'batch_size': 3, 'capacity': 4, 'min_after_dequeue': 1}
    for tensors in (
        tf.train.batch(tensor_list=[1, 2], batch_size=3),
        tf.train.batch_join(tensor_list_list=[[1, 2]], batch_size=3),
        tf.train.shuffle_batch(tensor_list=[1, 2], **shuffled),
        tf.train.shuffle_batch_join(tensor_list_list=[[1, 2]], **shuffled),
    ):
        assert [tensor.shape for tensor in tensors] == [[3], [3]]
    path = tf.train.write_graph(graph_def=tf.Graph().as_graph_def(), logdir=os.path.dirname(__file__), name='graph')
    assert os.path.exists(path)


def summaries():
    with tf.name_scope('scope'):
        tf.scalar_summary(['a (raw)', 'b/c'], [1.0, 2.0])
        tf.histogram_summary('my histogram', [1.0, 2.0], collections=['mine'])
        tf.image_summary('image', tf.zeros([3, 2, 2, 1]), max_images=2)
        tf.audio_summary('audio', tf.zeros([1, 4]), 8)
    values = tf.Summary.FromString(tf.merge_all_summaries().eval()).value
    assert [value.tag for value in values] == ['a (raw)', 'b/c', 'image/image/0', 'image/image/1', 'audio/audio/0']
    assert [value.simple_value for value in values[:2]] == [1, 2]
    value, = tf.Summary.FromString(tf.merge_summary(tf.get_collection('mine')).eval()).value
    assert (value.tag, value.histo.num) == ('my histogram', 2)


batches()
orders()
images_and_losses()
cells_and_queues()
for arguments in ({'concat_dim': 0, 'values': [[1]], 'nonsense': 1}, {'values': [[1]], 'split_dim': 0}):
    try:
        tf.concat(**arguments)
    except TypeError:
        continue
    raise AssertionError(arguments)
assert issubclass(tf.train.SyncReplicasOptimizerV2, tf.train.Optimizer) and tf.train.SummaryWriterCache.get
assert tf.nn.state_saving_rnn
# These calls mean the same as in 1.15.
assert tf.nn.rnn_cell.BasicLSTMCell(3, 1.0, 0).state_size == 6
assert tf.nn.rnn_cell.LSTMCell(3, 1)._use_peepholes
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for number, (found, (_, expected)) in enumerate(zip(sess.run([tensor for tensor, _ in CASES]), CASES)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg='case %d' % number)
with tf.Graph().as_default(), tf.Session():
    summaries()
print(len(CASES), 'as NumPy')
