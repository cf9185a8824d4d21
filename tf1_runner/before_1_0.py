"""Names, arguments and orders of arguments that TensorFlow 0.7 to 0.12 had.

Sources: RELEASE.md, tools/compatibility/tf_upgrade.py, and the signatures in the documentation of
these versions. What has another meaning under the same name, such as the division of integers,
stays as in 1.15.
"""

import functools
import numbers

import tensorflow.compat.v1 as tf

from tf1_runner.private_api import rnn_cell


def scalar_summary(tags, values, collections=None, name=None):
    """Return a summary of scalars: a tag and a value, or tensors of one shape with many."""
    return _summary('ScalarSummary', collections, name, tags=tags, values=values)


def histogram_summary(tag, values, collections=None, name=None):
    """Return a summary of a histogram."""
    return _summary('HistogramSummary', collections, name, tag=tag, values=values)


def image_summary(tag, tensor, max_images=3, collections=None, name=None):
    """Return a summary of at most `max_images` images [batch, height, width, channels]."""
    return _summary(
        'ImageSummary', collections, name, tag=tag, tensor=tensor, max_images=max_images
    )


def audio_summary(tag, tensor, sample_rate, max_outputs=3, collections=None, name=None):
    """Return a summary of at most `max_outputs` clips [batch, frames] or with channels."""
    arguments = {'sample_rate': float(sample_rate), 'max_outputs': max_outputs}
    return _summary('AudioSummaryV2', collections, name, tag=tag, tensor=tensor, **arguments)


def _summary(kind, collections, name, **arguments):
    """Return a summary operation with exactly this tag, in the collections.

    The functions of tf.summary put the name scope before it, and replace some characters.
    """
    with tf.name_scope(name, kind.replace('V2', '')) as scope:
        summary = getattr(tf.raw_ops, kind)(name=scope, **arguments)
    for collection in [tf.GraphKeys.SUMMARIES] if collections is None else collections:
        tf.add_to_collection(collection, summary)
    return summary


def _self_adjoint_eig(tensor, name=None):
    """Return the eigenvalues [..., 1, n] above the eigenvectors [..., n, n], as one tensor."""
    values, vectors = tf.self_adjoint_eig(tensor, name)
    return tf.concat([values[..., None, :], vectors], -2)


SUMMARIES = {
    'audio_summary': audio_summary,
    'histogram_summary': histogram_summary,
    'image_summary': image_summary,
    'merge_all_summaries': tf.summary.merge_all,
    'merge_summary': tf.summary.merge,
    'scalar_summary': scalar_summary,
}
_WITH_BATCHES = (  # Each of these has become one with its `batch_` form.
    'cholesky cholesky_solve fft fft2d fft3d ifft ifft2d ifft3d matrix_band_part '
    'matrix_determinant matrix_diag matrix_diag_part matrix_inverse matrix_set_diag matrix_solve '
    'matrix_solve_ls matrix_transpose matrix_triangular_solve self_adjoint_eigvals svd'
)
NAMES = {  # owner -> old name -> what has a new name
    tf: {
        **SUMMARIES,
        **{f'batch_{name}': getattr(tf, name) for name in _WITH_BATCHES.split()},
        'batch_matmul': tf.matmul,
        'batch_self_adjoint_eig': _self_adjoint_eig,
        'complex_abs': tf.abs,
        'concat_v2': tf.concat,
        'inv': tf.reciprocal,
        'list_diff': tf.setdiff1d,
        'listdiff': tf.setdiff1d,
        'mul': tf.multiply,
        'neg': tf.negative,
        'pack': tf.stack,
        'select': tf.where,
        'split_v': tf.split,
        'sub': tf.subtract,
        'unpack': tf.unstack,
    },
    tf.SparseTensorValue: {'shape': property(lambda self: self.dense_shape)},
    tf.TensorArray: {'pack': tf.TensorArray.stack, 'unpack': tf.TensorArray.unstack},
    tf.image: {
        'per_image_whitening': tf.image.per_image_standardization,
        'saturate_cast': tf.saturate_cast,
    },
    tf.nn: {
        'bidirectional_rnn': tf.nn.static_bidirectional_rnn,
        'rnn': tf.nn.static_rnn,
        'state_saving_rnn': tf.nn.static_state_saving_rnn,
    },
    tf.train: {
        'SummaryWriter': tf.summary.FileWriter,
        'SummaryWriterCache': tf.summary.FileWriterCache,
        'SyncReplicasOptimizerV2': tf.train.SyncReplicasOptimizer,
    },
}


def _is_scalar(value):
    return isinstance(value, numbers.Integral) or tf.is_tensor(value) and value.shape.ndims == 0


def _always(*positional):
    return True  # Since 1.0, the function needs named arguments.


def _starts_with_axis(axis, values=None, *rest):
    return _is_scalar(axis) or isinstance(values, (list, tuple))


def _starts_with_scalar(first, *rest):
    return _is_scalar(first)


def _has_height(images, height=None, *rest):
    return _is_scalar(height)


def _starts_with_dense(first, *rest):
    return not isinstance(first, tf.SparseTensor)


def _has_labels_last(weights, biases=None, inputs=None, labels=None, *rest):
    return tf.is_tensor(labels) and labels.dtype.is_integer  # Inputs are floats.


def _has_name_second(logits, name=None, *rest):
    return isinstance(name, str)


def _has_int_at(index):
    def has_int(*positional):
        # 0 and 1 also stand for False and True.
        return len(positional) > index and type(positional[index]) is int and positional[index] > 1

    return has_int


_SAMPLED = (
    'weights biases inputs labels num_sampled num_classes num_true sampled_values '
    'remove_accidental_hits partition_strategy name'
)
_CTC = 'inputs labels sequence_length preprocess_collapse_repeated ctc_merge_repeated time_major'
_LSTM = (
    'self num_units input_size= use_peepholes cell_clip initializer num_proj proj_clip '
    'num_unit_shards num_proj_shards forget_bias state_is_tuple activation'
)
_BASIC_LSTM = 'self num_units forget_bias input_size= state_is_tuple activation'
_SIZES = 'images new_height new_width method align_corners'
_SIGNATURES = [
    # Owner, name, and the old arguments in their order: `old=new` has another name now, `old=` had
    # no effect. The function tells by the arguments without names that they are in the old order,
    # if they cannot be in the present one. None: the order is the present one, or nothing can tell.
    (tf, 'batch_matmul', 'x=a y=b adj_x=adjoint_a adj_y=adjoint_b name', _always),
    (tf, 'concat', 'concat_dim=axis values name', _starts_with_axis),
    (tf, 'listdiff', 'x y out_idx=index_dtype name', None),
    (tf, 'reverse', 'tensor dims=axis name', None),
    (tf, 'select', 'condition t=x e=y name', None),
    (tf, 'sparse_split', 'split_dim=axis num_split sp_input name', _always),
    (tf, 'split', 'split_dim=axis num_split=num_or_size_splits value name', _starts_with_scalar),
    (tf, 'split_v', 'value size_splits=num_or_size_splits split_dim=axis num name', None),
    (tf.SparseTensor, '__init__', 'self indices values shape=dense_shape', None),
    (tf.SparseTensorValue, '__new__', 'cls indices values shape=dense_shape', None),
    (tf.image, 'resize_images', _SIZES, _has_height),
    (tf.nn, 'ctc_loss', _CTC, _starts_with_dense),
    (tf.nn, 'log_softmax', 'logits name', _has_name_second),
    (tf.nn, 'nce_loss', _SAMPLED, _has_labels_last),
    (tf.nn, 'sampled_softmax_loss', _SAMPLED, _has_labels_last),
    (tf.nn, 'sigmoid_cross_entropy_with_logits', 'logits targets=labels name', _always),
    (tf.nn, 'softmax', 'logits name', _has_name_second),
    (tf.nn, 'softmax_cross_entropy_with_logits', 'logits labels dim name', _always),
    (tf.nn, 'sparse_softmax_cross_entropy_with_logits', 'logits labels name', _always),
    (tf.train, 'batch', 'tensor_list=tensors', None),
    (tf.train, 'batch_join', 'tensor_list_list=tensors_list', None),
    (tf.train, 'shuffle_batch', 'tensor_list=tensors', None),
    (tf.train, 'shuffle_batch_join', 'tensor_list_list=tensors_list', None),
    (tf.train, 'write_graph', 'graph_def=graph_or_graph_def', None),
    (rnn_cell.BasicLSTMCell, '__init__', _BASIC_LSTM, _has_int_at(3)),
    (rnn_cell.BasicRNNCell, '__init__', 'self num_units input_size= activation', _has_int_at(2)),
    (rnn_cell.GRUCell, '__init__', 'self num_units input_size= activation', _has_int_at(2)),
    (rnn_cell.LSTMCell, '__init__', _LSTM, _has_int_at(2)),
]


def install():
    """Give `tf` the names, and accept the arguments."""
    for owner, names in NAMES.items():
        for name, value in names.items():
            if not hasattr(owner, name):
                setattr(owner, name, value)
    _accept_other_meanings()
    for owner, name, arguments, is_old in _SIGNATURES:
        setattr(owner, name, _accepting(getattr(owner, name), arguments, is_old))
    for initializer, create in [(tf.zeros_initializer, tf.zeros), (tf.ones_initializer, tf.ones)]:
        initializer.__new__ = _creating(initializer, create)


def _accepting(function, arguments, is_old):
    """Return a function that also accepts the old arguments; see `_SIGNATURES`."""
    order = [argument.rpartition('=')[2] for argument in arguments.split()]
    renamed = dict(argument.split('=') for argument in arguments.split() if '=' in argument)

    @functools.wraps(function)
    def call(*positional, **named):
        named = {renamed.get(name, name): value for name, value in named.items()}
        if is_old and positional and is_old(*positional):
            named.update(zip(order, positional))
            positional = positional[len(order) :]
        named.pop('', None)
        return function(*positional, **named)

    return call


def _creating(owner, create):
    """Return a `__new__` of an initializer class that makes a tensor if it gets a shape."""

    def new(cls, shape=None, *positional, **named):
        if cls is owner and isinstance(shape, (list, tuple)):
            return create(shape, *positional, **named)
        return object.__new__(cls)

    return new


def _accept_other_meanings():
    """Accept arguments that had another form, too."""
    resize, reverse, crop = tf.image.resize_images, tf.reverse, tf.random_crop
    make_sync = tf.train.SyncReplicasOptimizer.__init__

    def resize_images(images, size=None, *rest, new_height=None, new_width=None, **named):
        if size is None:
            size = [new_height, new_width]
        return resize(images, size, *rest, **named)

    def reverse_axes(tensor, axis, name=None):
        first = axis[0] if isinstance(axis, (list, tuple)) and axis else axis
        if isinstance(first, bool) or tf.bool == getattr(first, 'dtype', None):
            axis = tf.where(axis)[:, 0]  # of [True, False, True]: [0, 2]
        return reverse(tensor, axis, name)

    def random_crop(value, size, *rest, **named):
        shape = tf.convert_to_tensor(value).shape
        if isinstance(size, (list, tuple)) and len(size) == 2 and shape.ndims == 3:
            size = [*size, int(shape[2])]
        return crop(value, size, *rest, **named)

    def make_sync_either_way(self, *positional, replica_id=None, **named):
        make_sync(self, *positional, **named)
        # Create the op now, because programs request it after the graph is finalized.
        clean_up_op = tf.no_op(name='clean_up')
        self.get_clean_up_op = lambda: clean_up_op

    tf.image.resize_images, tf.reverse = resize_images, reverse_axes
    tf.random_crop = tf.image.random_crop = random_crop
    tf.train.SyncReplicasOptimizer.__init__ = make_sync_either_way
