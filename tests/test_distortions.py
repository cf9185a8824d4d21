"""Distortions: equal to NumPy, uniformly distributed, in the requested range.

benchmark/test_reference.py compares them with tf.image.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10 import distortions, input as input_lib
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.distortions import Distortions
from tests.helpers import data_sets, queues


def _draws(n, seed):
    rng = np.random.RandomState(seed)
    return (
        rng.randint(0, 9, n),
        rng.randint(0, 9, n),
        rng.rand(n) < 0.5,
        rng.uniform(0.2, 1.8, n).astype(np.float32),
    )


def _distorted(image, row, column, flip, factor, size=24):
    """Distort in float64 by NumPy: tf.image has only 4 digits for nearly uniform images."""
    x = image[:, row : row + size, column : column + size].astype(np.float64)
    x = x[:, :, ::-1] if flip else x
    x = (x - x.mean((1, 2), keepdims=True)) * factor + x.mean((1, 2), keepdims=True)
    return ((x - x.mean()) / max(x.std(), x.size**-0.5)).transpose(1, 2, 0)


@pytest.mark.parametrize('n', [1, 2, 7, 8, 16, 32, 64, 100, 128, 256, 512])
def test_batches_of_all_sizes(n):
    """The product that selects the columns has a batch of n matrices."""
    images = np.random.RandomState(n).randint(0, 256, [n, 3, 32, 32]).astype(np.uint8)
    draws = _draws(n, seed=n)
    with tf.Session() as session:
        found = session.run(distortions.distort(tf.constant(images), Distortions(*draws)))
    expected = [_distorted(image, *draw) for image, *draw in zip(images, *draws)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('low, high, tolerance', [(255, 256, 0), (100, 102, 1e-4), (0, 256, 1e-5)])
def test_standardisation(low, high, tolerance):
    images = np.random.RandomState(3).randint(low, high, [20, 3, 32, 32]).astype(np.uint8)
    draws = _draws(20, seed=4)
    with tf.Session() as session:
        distorted = session.run(distortions.distort(tf.constant(images), Distortions(*draws)))
    for found, *each in zip(distorted, images, *draws):
        np.testing.assert_allclose(found, _distorted(*each), atol=tolerance)


def test_the_least_standard_deviation():
    """One value of 1,728 differs by 1, or by 0.2 after the contrast."""
    image = np.full([3, 32, 32], 7, np.uint8)
    image[1, 16, 16] = 8
    draws = [np.array([draw]) for draw in (4, 4, False, np.float32(0.2))]
    with tf.Session() as session:
        distorted = session.run(distortions.distort(tf.constant(image[None]), Distortions(*draws)))
    np.testing.assert_allclose(distorted[0], _distorted(image, 4, 4, False, 0.2), atol=1e-4)


def test_draws_are_even_and_independent():
    with tf.Session() as session:
        rows, columns, flip, contrast = draws = session.run(distortions.sample(20000))
    for offsets in (rows, columns):
        counts = np.bincount(offsets, minlength=9)
        assert len(counts) == 9
        # five standard deviations
        assert np.abs(counts - 20000 / 9).max() < 5 * (20000 * 8 / 81) ** 0.5
    assert abs(flip.mean() - 0.5) < 5 * 0.5 / 20000**0.5
    assert contrast.min() >= 0.2 and contrast.max() < 1.8
    counts, _ = np.histogram(contrast, 10, (0.2, 1.8))
    assert np.abs(counts - 2000).max() < 5 * (20000 * 0.09) ** 0.5
    # No correlation between the draws of one example, of neighbours, or of examples a batch apart.
    for i, first in enumerate(draws):
        for second in draws[i + 1 :]:
            assert abs(np.corrcoef(first, second)[0, 1]) < 5 / 20000**0.5
        for distance in (1, 2, 128):
            assert abs(np.corrcoef(first[:-distance], first[distance:])[0, 1]) < 5 / 20000**0.5


@pytest.mark.parametrize('size', [32, 20])
def test_crops_of_another_size(size):
    images = np.random.RandomState(6).randint(0, 256, [1000, 3, 32, 32]).astype(np.uint8)
    draws = distortions.sample(1000, image_size=size)
    with tf.Session() as session:
        drawn, distorted, cropped = session.run(
            [
                draws,
                distortions.distort(images, draws, image_size=size),
                distortions.crop(images[:1], image_size=size),
            ]
        )
    assert set(drawn[0]) == set(drawn[1]) == set(range(32 - size + 1))
    for found, *each in list(zip(distorted, images, *drawn))[:20]:
        np.testing.assert_allclose(found, _distorted(*each, size=size), atol=1e-4)
    margin = (32 - size) // 2
    expected = _distorted(images[0], margin, margin, False, 1, size)
    np.testing.assert_allclose(cropped[0], expected, atol=1e-4)


@pytest.mark.parametrize(
    'crop_range, size, offsets',
    [(1.0, 24, range(9)), (0.75, 24, range(1, 8)), (0.0, 24, [4]), (0.5, 16, range(4, 13))],
)
def test_the_range_of_crops(crop_range, size, offsets):
    hparams = dataclasses.replace(CLASSIC, crop_range=crop_range)
    with tf.Session() as session:
        sampled = session.run(distortions.sample(1000, hparams, size))
    assert set(sampled.rows) == set(sampled.columns) == set(offsets)


@pytest.mark.parametrize('contrast, low, high', [(0.0, 1, 1), (0.5, 0.5, 1.5), (1.0, 0, 2)])
def test_the_range_of_contrast(contrast, low, high):
    hparams = dataclasses.replace(CLASSIC, contrast=contrast)
    with tf.Session() as session:
        drawn = session.run(distortions.sample(1000, hparams)).contrast_factors
    assert low <= drawn.min() < low + 0.05 and high - 0.05 < drawn.max() <= high


def test_each_training_image_has_its_own_draws(tmp_path, monkeypatch):
    """The pixels encode row and column; without standardisation they stay readable."""
    image = np.zeros([3, 32, 32], np.uint8)
    image[0], image[1] = np.mgrid[:32, :32]
    data_dir = data_sets.write(tmp_path / 'data')
    for path in dataset.read(data_dir).train.paths:
        np.tile(np.concatenate([[0], image.ravel()]).astype(np.uint8), [20, 1]).tofile(path)
    monkeypatch.setattr(distortions, '_standardize', lambda images, contrast: (images, contrast))
    (images, contrast), _ = input_lib.distorted_inputs(data_dir, 100)
    images, contrast = (np.concatenate(parts) for parts in zip(*queues.run([images, contrast], 40)))
    rows, columns, flip = (
        images[:, 0, 0, 0],
        images[:, 1].min((1, 2)),
        images[:, 1, 0, 0] > images[:, 1, 0, 1],
    )
    assert len(set(zip(rows, columns, flip))) == 9 * 9 * 2
    assert len(set(contrast)) > 3900 and contrast.min() < 0.21 and contrast.max() > 1.79
