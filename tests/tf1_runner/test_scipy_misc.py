"""The function imresize against NumPy; functions that SciPy has itself."""

import importlib
import sys

import numpy as np
import pytest

from tf1_runner import modules, scipy_misc

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
