"""Names, arguments and orders of arguments of TensorFlow 0.7 to 0.12, for CIFAR-10 programs.

Sources: RELEASE.md, tools/compatibility/tf_upgrade.py, and the signatures in the documentation of
these versions. What has another meaning under the same name, such as the division of integers,
stays as in 1.15.
"""

import functools
import numbers

import tensorflow.compat.v1 as tf


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


def _summary(kind, collections, name, **arguments):
    """Return a summary operation with exactly this tag, in the collections.

    The functions of tf.summary put the name scope before it, and replace some characters.
    """
    with tf.name_scope(name, kind) as scope:
        summary = getattr(tf.raw_ops, kind)(name=scope, **arguments)
    for collection in [tf.GraphKeys.SUMMARIES] if collections is None else collections:
        tf.add_to_collection(collection, summary)
    return summary


SUMMARIES = {
    'histogram_summary': histogram_summary,
    'image_summary': image_summary,
    'merge_all_summaries': tf.summary.merge_all,
    'merge_summary': tf.summary.merge,
    'scalar_summary': scalar_summary,
}
NAMES = {  # owner -> old name -> what has a new name
    tf: {
        **SUMMARIES,
        'concat_v2': tf.concat,
        'mul': tf.multiply,
        'pack': tf.stack,
        'select': tf.where,
        'sub': tf.subtract,
    },
    tf.image: {'per_image_whitening': tf.image.per_image_standardization},
    tf.train: {'SummaryWriter': tf.summary.FileWriter},
}


def _is_scalar(value):
    return isinstance(value, numbers.Integral) or tf.is_tensor(value) and value.shape.ndims == 0


def _always(*positional):
    return True  # Since 1.0, the function needs named arguments.


def _starts_with_axis(axis, values=None, *rest):
    return _is_scalar(axis) or isinstance(values, (list, tuple))


def _starts_with_scalar(first, *rest):
    return _is_scalar(first)


_SIGNATURES = [
    # Owner, name, and the old arguments in their order: `old=new` has another name now, `old=` had
    # no effect. The function tells by the arguments without names that they are in the old order,
    # if they cannot be in the present one. None: the order is the present one, or nothing can tell.
    (tf, 'concat', 'concat_dim=axis values name', _starts_with_axis),
    (tf, 'split', 'split_dim=axis num_split=num_or_size_splits value name', _starts_with_scalar),
    (tf.nn, 'softmax_cross_entropy_with_logits', 'logits labels dim name', _always),
    (tf.nn, 'sparse_softmax_cross_entropy_with_logits', 'logits labels name', _always),
    (tf.train.SyncReplicasOptimizer, '__init__', 'replica_id=', None),
]


def install():
    """Give `tf` the names, and accept the arguments."""
    for owner, names in NAMES.items():
        for name, value in names.items():
            if not hasattr(owner, name):
                setattr(owner, name, value)
    for owner, name, arguments, is_old in _SIGNATURES:
        setattr(owner, name, _accepting(getattr(owner, name), arguments, is_old))
    tf.random_crop = tf.image.random_crop = _random_crop


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


_crop = tf.random_crop


@functools.wraps(_crop)
def _random_crop(value, size, *rest, **named):
    """Crop an image. A size without channels keeps all of them, as up to TensorFlow 0.7."""
    shape = tf.convert_to_tensor(value).shape
    if isinstance(size, (list, tuple)) and len(size) == 2 and shape.ndims == 3:
        size = [*size, int(shape[2])]
    return _crop(value, size, *rest, **named)
