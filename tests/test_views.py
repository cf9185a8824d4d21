"""Views against tf.image, an example at a time, and their mean probabilities against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation
from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import checkpoints, data_sets, oracle

# top left, of 24 x 24 of 32 x 32: the centre, and 3 pixels from it
CORNERS = [(4, 4), (1, 1), (1, 7), (7, 1), (7, 7)]


def expected_views(images, num_views):
    """A list of [n, 24, 24, 3], of uint8 [n, 32, 32, 3]."""
    corners, mirrored = {
        1: (CORNERS[:1], [False]),
        2: (CORNERS[:1], [False, True]),
        10: (CORNERS, [False, True]),
    }[num_views]

    def view(image, corner, mirror):
        crop = tf.image.crop_to_bounding_box(
            tf.cast(image, tf.float32), corner[0], corner[1], 24, 24
        )
        return tf.image.per_image_standardization(
            tf.image.flip_left_right(crop) if mirror else crop
        )

    with tf.Session() as session:
        return session.run(
            [
                tf.stack([view(image, corner, mirror) for image in images])
                for mirror in mirrored
                for corner in corners
            ]
        )


@pytest.mark.parametrize('num_views', [1, 2, 10])
def test_views(data_dir, num_views):
    _, images = oracle.read_records(dataset.read(data_dir).test.paths)
    actual = evaluation.crop_and_mirror(tf.constant(images[:3].transpose(0, 3, 1, 2)), num_views)
    with tf.Session() as session:
        actual = session.run(actual)
    expected = expected_views(images[:3], num_views)
    assert len(actual) == num_views
    for one, other in zip(actual, expected):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize('num_views', [0, 3, 5, '1'])
def test_an_unknown_number_of_views(num_views):
    with pytest.raises(ValueError, match='^Unknown number of views: %s$' % num_views):
        evaluation.crop_and_mirror(tf.zeros([1, 3, 32, 32], tf.uint8), num_views)


@pytest.mark.parametrize('num_views', [2, 10])
def test_probabilities_are_averaged(tmp_path, num_views):
    paths = dataset.read(data_sets.write(tmp_path, train_records=10, test_records=8)).test.paths
    path, variables = checkpoints.save(tmp_path, 1)
    result = evaluation.Evaluator(data_sets.records(paths), '/cpu:0', 6, num_views).evaluate(
        checkpoint.read(path)
    )
    labels, images = oracle.read_records(paths)
    logits = oracle.logits(
        np.concatenate(expected_views(images[:6], num_views)), variables
    ).reshape(num_views, 6, 10)
    probabilities = np.exp(logits - logits.max(2, keepdims=True))
    probabilities = (probabilities / probabilities.sum(2, keepdims=True)).mean(0)
    assert (result.scores.num_examples, result.num_views) == (6, num_views)
    assert result.scores.num_correct == (probabilities.argmax(1) == labels[:6]).sum()
    cross_entropy = -np.log(probabilities[np.arange(6), labels[:6]]).mean()
    np.testing.assert_allclose(result.losses['losses/cross_entropy'], cross_entropy, rtol=1e-4)
