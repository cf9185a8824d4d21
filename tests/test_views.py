"""Views against tf.image, an example at a time, and their mean probabilities against NumPy."""
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import evaluation, views
from cifar10.data import dataset
from cifar10.runs import checkpoint
from tests.helpers import oracle
from tests import test_evaluation

CORNERS = [(4, 4), (1, 1), (1, 7), (7, 1), (7, 7)]  # top left, of 24 x 24 of 32 x 32: the centre, and 3 pixels from it


def expected_views(images, num_views):
    """A list of [n, 24, 24, 3], of uint8 [n, 32, 32, 3]."""
    corners, mirrored = {1: (CORNERS[:1], [False]), 2: (CORNERS[:1], [False, True]), 10: (CORNERS, [False, True])}[num_views]

    def view(image, corner, mirror):
        crop = tf.image.crop_to_bounding_box(tf.cast(image, tf.float32), corner[0], corner[1], 24, 24)
        return tf.image.per_image_standardization(tf.image.flip_left_right(crop) if mirror else crop)
    with tf.Session() as session:
        return [session.run(tf.stack([view(image, corner, mirror) for image in images])) for mirror in mirrored for corner in corners]


@pytest.mark.parametrize('num_views', [1, 2, 10])
def test_views(data_dir, num_views):
    _, images = oracle.read_records(dataset.test_files(data_dir))
    actual = views.views(tf.constant(images[:3].transpose(0, 3, 1, 2)), num_views)
    with tf.Session() as session:
        actual = session.run(actual)
    expected = expected_views(images[:3], num_views)
    assert len(actual) == num_views
    for one, other in zip(actual, expected):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize('num_views', [2, 10])
def test_the_probabilities_of_the_views_are_averaged(tmp_path, data_dir, num_views):
    path, variables = test_evaluation.save_checkpoint(tmp_path, 1)
    evaluator = evaluation.Evaluator(data_dir, 'test', 20, num_views, '/cpu:0', tf.ConfigProto())
    result = evaluator.evaluate(checkpoint.read(path))
    labels, images = oracle.read_records(dataset.test_files(data_dir))
    logits = np.stack([oracle.logits(view, variables) for view in expected_views(images[:20], num_views)])
    probabilities = np.exp(logits - logits.max(2, keepdims=True))
    probabilities = (probabilities / probabilities.sum(2, keepdims=True)).mean(0)
    assert result.num_correct == (probabilities.argmax(1) == labels[:20]).sum()
    cross_entropy = -np.log(probabilities[np.arange(20), labels[:20]]).mean()
    np.testing.assert_allclose(result.losses['losses/cross_entropy'], cross_entropy, rtol=1e-4)
