"""The function imresize against NumPy; functions that SciPy has itself."""

import numpy as np
import pytest

from tf1_runner import scipy_misc

pytest.importorskip('PIL.Image')


def test_values_are_scaled_to_bytes():
    values = np.random.RandomState(0).normal(size=(4, 5))
    scaled = (values - values.min()) / (values.max() - values.min())
    expected = np.floor(scaled * 255 + 0.5)
    found = scipy_misc.imresize(values, (4, 5), 'nearest')
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


def test_sizes():
    image = np.full([6, 4, 3], 7, np.uint8)
    for size, shape in [((3, 8), (3, 8, 3)), (np.int64(50), (3, 2, 3)), (2.0, (12, 8, 3))]:
        np.testing.assert_array_equal(scipy_misc.imresize(image, size), np.full(shape, 7))


@pytest.mark.parametrize(
    'interp, expected', [('nearest', [0, 0, 160, 160]), ('bilinear', [0, 40, 120, 160])]
)
def test_interpolation(interp, expected):
    """At twice the width, output pixel i is at i / 2 - 1 / 4 of the input."""
    found = scipy_misc.imresize(np.array([[0, 160]], np.uint8), (1, 4), interp)
    np.testing.assert_array_equal(found, [expected])
