"""Image functions of SciPy against NumPy; functions that SciPy has itself."""

import importlib
import sys

import numpy as np
import pytest

from tf1_runner import modules, scipy_misc

Image = pytest.importorskip('PIL.Image')


@pytest.mark.parametrize(
    'shape, axis', [((4, 5), 1), ((3, 4, 5), 0), ((4, 5, 3), 2), ((2, 5, 4), 2)]
)
def test_values_are_scaled_to_bytes(shape, axis):
    values = np.random.RandomState(0).normal(size=shape)
    scaled = (values - values.min()) / (values.max() - values.min())
    for found, expected in [
        (scipy_misc.toimage(values), scaled),
        (scipy_misc.toimage(values, cmin=0, cmax=0.5), np.clip(values * 2, 0, 1)),
        (scipy_misc.toimage(values, 255, 51), 0.2 + scaled * 0.8),
    ]:
        expected = np.moveaxis(np.floor(expected * 255 + 0.5), axis, -1)
        np.testing.assert_array_equal(np.array(found), expected)


def test_what_is_saved_is_read(tmp_path):
    image = np.random.RandomState(0).randint(0, 256, [6, 4, 3]).astype(np.uint8)
    path = str(tmp_path / 'image.png')
    scipy_misc.imsave(path, image)
    np.testing.assert_array_equal(scipy_misc.imread(path), image)
    brightness = image.dot([0.299, 0.587, 0.114])  # of ITU-R BT.601
    np.testing.assert_allclose(scipy_misc.imread(path, flatten=True), brightness, atol=0.01)
    assert scipy_misc.imread(path, mode='L').shape == (6, 4)


COLORS = np.array([[10, 20, 30], [200, 100, 50]], np.uint8)


@pytest.mark.parametrize('mode', ['1', 'P', 'transparent'])
def test_images_of_two_values(tmp_path, mode):
    """Bits become 0 and 255; indices become colors, with alpha if one is transparent."""
    indices = np.random.RandomState(0).randint(0, 2, [6, 4])
    image = Image.fromarray(indices.astype(np.uint8) * (255 if mode == '1' else 1))
    if mode == '1':
        image, expected = image.convert('1'), indices * 255
    else:
        image.putpalette(COLORS.tobytes())
        expected = COLORS[indices]
    path = str(tmp_path / 'image.png')
    image.save(path, **{'transparency': 1} if mode == 'transparent' else {})
    if mode == 'transparent':
        expected = np.dstack([expected, 255 * (1 - indices)])
    found = scipy_misc.imread(path)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)
    brightness = expected[..., :3].dot([0.299, 0.587, 0.114]) if mode != '1' else expected
    np.testing.assert_allclose(scipy_misc.imread(path, flatten=True), brightness, atol=0.01)
    np.testing.assert_array_equal(
        scipy_misc.imread(path, flatten=True, mode='L'), np.floor(brightness + 0.5)
    )
    assert scipy_misc.imread(path, mode='RGB').shape == (6, 4, 3)


def test_modes_of_arrays():
    """A mode says what the values are; nothing is converted."""
    image = np.random.RandomState(0).randint(0, 256, [6, 4, 3]).astype(np.uint8)
    found = scipy_misc.toimage(image, mode='YCbCr')
    assert found.mode == 'YCbCr'
    np.testing.assert_array_equal(np.array(found), image)
    gray = image[..., 0]
    resized = scipy_misc.imresize(gray, 100, mode='P')
    np.testing.assert_array_equal(resized, gray[..., None].repeat(3, 2))
    found = scipy_misc.toimage(gray // 128, pal=COLORS)
    np.testing.assert_array_equal(np.array(found.convert('RGB')), COLORS[gray // 128])
    found = scipy_misc.toimage(np.array([[0.0, 1, 4]]), high=40, low=20, mode='I')
    np.testing.assert_array_equal(np.array(found), [[20, 25, 40]])
    for shape, mode in [([6, 4, 3], 'L'), ([6, 4, 3], 'RGBA'), ([6, 4], 'RGB'), ([6, 5, 2], None)]:
        with pytest.raises(ValueError, match='shape'):
            scipy_misc.toimage(np.zeros(shape), mode=mode)


def test_rotation():
    image = np.random.RandomState(0).randint(0, 256, [5, 5, 3]).astype(np.uint8)
    np.testing.assert_array_equal(scipy_misc.imrotate(image, 90, 'nearest'), np.rot90(image))


def test_sizes():
    image = np.full([6, 4, 3], 7, np.uint8)
    for size, shape in [((3, 8), (3, 8, 3)), (np.int64(50), (3, 2, 3)), (2.0, (12, 8, 3))]:
        np.testing.assert_array_equal(scipy_misc.imresize(image, size), np.full(shape, 7))


@pytest.mark.parametrize(
    'interp, expected', [('nearest', [0, 0, 4, 4]), ('bilinear', [0, 1, 3, 4])]
)
def test_interpolation_without_scaling(interp, expected):
    """At twice the width, output pixel i is at i / 2 - 1 / 4 of the input."""
    row = np.array([[-8.5, -4.5]]) + 8.5
    found = scipy_misc.imresize(row, (1, 4), interp, 'F')
    np.testing.assert_allclose(found, [expected], atol=1e-6)


def test_only_missing_functions_are_added(tmp_path, monkeypatch):
    """SciPy has `imread` and another function, but not `imresize`."""
    path = tmp_path / 'scipy' / 'misc' / '__init__.py'
    path.parent.mkdir(parents=True)
    (tmp_path / 'scipy' / '__init__.py').write_text('')
    path.write_text('def imread(name): return "of SciPy"\ndef face(): return "a raccoon"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, 'meta_path', [modules._Finder('', set())] + sys.meta_path)
    for name in ('scipy', 'scipy.misc'):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    misc = importlib.import_module('scipy.misc')
    assert (misc.imread('x'), misc.face(), misc.__file__) == ('of SciPy', 'a raccoon', str(path))
    assert misc.imresize(np.zeros([6, 4], np.uint8), 50).shape == (3, 2)


@pytest.mark.parametrize(
    'limits', [{'high': 256}, {'low': -1}, {'high': 3, 'low': 4}, {'cmin': 3, 'cmax': 0}]
)
def test_limits_in_the_wrong_order_or_too_large(limits):
    with pytest.raises(ValueError, match='bytescale needs'):
        scipy_misc.bytescale(np.arange(4.0), **limits)
