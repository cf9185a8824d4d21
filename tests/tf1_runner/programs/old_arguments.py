# Calls what TensorFlow 0.7 to 0.12 had under other names or with other arguments, and compares the results with NumPy.
import numpy as np
import tensorflow as tf

RANDOM = np.random.RandomState(0)
CASES = []


def check(tensor, expected):
    CASES.append((tensor, expected))


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
    ):
        check(parts[0], a)
        check(parts[1], b)
    check(tf.select(a > 0, a, b), np.where(a > 0, a, b))
    check(tf.pack([a, b]), [a, b])
    check(tf.mul(a, tf.sub(a, b)), a * (a - b))


def images_and_losses():
    image = RANDOM.normal(size=[1, 2, 3, 1])
    check(tf.image.per_image_whitening(image[0]), (image[0] - image.mean()) / image.std())
    logits, labels = RANDOM.normal(size=[4, 3]), np.eye(3)[[0, 2, 1, 2]]
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    check(tf.nn.softmax_cross_entropy_with_logits(logits, labels), -(labels * log_p).sum(1))
    check(tf.nn.sparse_softmax_cross_entropy_with_logits(logits, [0, 2, 1, 2]), -(labels * log_p).sum(1))


def summaries():
    with tf.name_scope('scope'):
        tf.scalar_summary(['a (raw)', 'b/c'], [1.0, 2.0])
        tf.histogram_summary('my histogram', [1.0, 2.0], collections=['mine'])
        tf.image_summary('image', tf.zeros([3, 2, 2, 1]), max_images=2)
    values = tf.Summary.FromString(tf.merge_all_summaries().eval()).value
    assert [value.tag for value in values] == ['a (raw)', 'b/c', 'image/image/0', 'image/image/1']
    assert [value.simple_value for value in values[:2]] == [1, 2]
    value, = tf.Summary.FromString(tf.merge_summary(tf.get_collection('mine')).eval()).value
    assert (value.tag, value.histo.num) == ('my histogram', 2)


orders()
images_and_losses()
for arguments in ({'concat_dim': 0, 'values': [[1]], 'nonsense': 1}, {'values': [[1]], 'split_dim': 0}):
    try:
        tf.concat(**arguments)
    except TypeError:
        continue
    raise AssertionError(arguments)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for number, (found, (_, expected)) in enumerate(zip(sess.run([tensor for tensor, _ in CASES]), CASES)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg='case %d' % number)
with tf.Graph().as_default(), tf.Session():
    summaries()
print(len(CASES), 'as NumPy')
