"""The image functions of SciPy against NumPy."""

import numpy as np
import pytest

from cifar10.tutorial import scipy_misc

pytest.importorskip('PIL')


@pytest.mark.parametrize(
    'shape, axis', [((4, 5), None), ((3, 4, 5), 0), ((4, 5, 3), 2), ((2, 5, 4), 2)]
)
def test_values_are_scaled_to_bytes(shape, axis):
    values = np.random.RandomState(0).normal(size=shape)
    expected = np.floor((values - values.min()) / (values.max() - values.min()) * 255 + 0.5)
    expected = expected if axis is None else np.moveaxis(expected, axis, -1)
    np.testing.assert_array_equal(np.array(scipy_misc.toimage(values)), expected)
    clipped = np.floor(np.clip(values, 0, 1) * 255 + 0.5)
    clipped = clipped if axis is None else np.moveaxis(clipped, axis, -1)
    np.testing.assert_array_equal(np.array(scipy_misc.toimage(values, cmin=0, cmax=1)), clipped)


def test_what_is_saved_is_read(tmp_path):
    image = np.random.RandomState(0).randint(0, 256, [6, 4, 3]).astype(np.uint8)
    path = str(tmp_path / 'image.png')
    scipy_misc.imsave(path, image)
    np.testing.assert_array_equal(scipy_misc.imread(path), image)
    brightness = image.dot([0.299, 0.587, 0.114])  # of ITU-R BT.601
    np.testing.assert_allclose(scipy_misc.imread(path, flatten=True), brightness, atol=0.01)
    assert scipy_misc.imread(path, mode='L').shape == (6, 4)


def test_sizes():
    image = np.full([6, 4, 3], 7, np.uint8)
    for size, shape in [((3, 8), (3, 8, 3)), (np.int64(50), (3, 2, 3)), (2.0, (12, 8, 3))]:
        np.testing.assert_array_equal(scipy_misc.imresize(image, size), np.full(shape, 7))


@pytest.mark.parametrize(
    'interp, mode, offset, atol',
    [('nearest', None, 0, 0), ('bilinear', 'F', -500.25, 1e-3), ('cubic', None, 0, 0.51)],
)
def test_a_ramp_stays_a_ramp(interp, mode, offset, atol):
    """Output pixel i of an image of twice the size is at i / 2 - 1 / 4 of the input; 'nearest'
    takes input pixel i // 2."""
    rows, columns = np.meshgrid(np.arange(10), np.arange(12), indexing='ij')
    ramp = (offset + 16 * rows + 9 * columns).astype(np.float64 if mode else np.uint8)
    rows, columns = np.meshgrid(np.arange(20), np.arange(24), indexing='ij')
    expected = offset + (
        16 * (rows // 2) + 9 * (columns // 2)
        if interp == 'nearest'
        else 8 * rows + 4.5 * columns - 6.25
    )
    found = scipy_misc.imresize(ramp, 200, interp, mode)
    assert found.shape == (20, 24) and found.dtype == (np.float32 if mode else np.uint8)
    inner = (slice(6, -6), slice(6, -6))  # outside, the edge has an effect
    np.testing.assert_allclose(found[inner], expected[inner], atol=atol)
