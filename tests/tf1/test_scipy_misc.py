"""Image functions of SciPy against NumPy; functions that SciPy has itself."""

import importlib
import sys

import numpy as np
import pytest

from cifar10.tf1 import modules, scipy_misc

pytest.importorskip('PIL')


@pytest.mark.parametrize(
    'shape, axis', [((4, 5), 1), ((3, 4, 5), 0), ((4, 5, 3), 2), ((2, 5, 4), 2)]
)
def test_values_are_scaled_to_bytes(shape, axis):
    values = np.random.RandomState(0).normal(size=shape)
    scaled = (values - values.min()) / (values.max() - values.min())
    for found, expected in [
        (scipy_misc.toimage(values), scaled),
        (scipy_misc.toimage(values, cmin=0, cmax=0.5), np.clip(values * 2, 0, 1)),
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
