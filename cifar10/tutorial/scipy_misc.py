"""Image functions of `scipy.misc` that SciPy has removed, on Pillow: for programs that save or read
pictures."""

import importlib.abc
import importlib.machinery
import sys

import numpy as np


def toimage(arr, high=255, low=0, cmin=None, cmax=None, pal=None, mode=None, channel_axis=None):  # noqa: PLR0913 (as SciPy's)
    """Makes a picture of an array.

    Args:
      arr: [height, width], or with an axis of 3 or 4 channels. Unless it is uint8, its values are
        scaled to the range of bytes.
      high, low: the bytes of the greatest and the least value.
      cmin, cmax: the least and the greatest value; None takes those of the array.
      pal: a palette, uint8 [256, 3]; None for none.
      mode: one of PIL's modes, to which the picture is converted; None for none. 'F' keeps the
        values of [height, width].
      channel_axis: the axis of the channels; None takes the first one of size 3, else of size 4.

    Returns:
      A PIL.Image.Image.

    Raises:
      ValueError: the array has no such axis.
    """
    from PIL import Image

    arr = np.asarray(arr)
    if mode == 'F' and arr.ndim == 2:
        return Image.fromarray(arr.astype(np.float32))
    if arr.ndim == 3:
        sizes = list(arr.shape)
        axis = channel_axis if channel_axis is not None else sizes.index(3 if 3 in sizes else 4)
        arr = np.moveaxis(arr, axis, 2)
    if arr.dtype != np.uint8:
        cmin, cmax = arr.min() if cmin is None else cmin, arr.max() if cmax is None else cmax
        scaled = (arr * 1.0 - cmin) * (high - low) / (cmax - cmin or 1) + low
        arr = (np.clip(scaled, low, high) + 0.5).astype(np.uint8)
    image = Image.fromarray(arr)
    if pal is not None:
        image.putpalette(np.asarray(pal, np.uint8).tobytes())
    return image.convert(mode) if mode and mode != image.mode else image


def imsave(name, arr, format=None):
    """Writes an array to a file, as `toimage` makes a picture of it."""
    toimage(arr, channel_axis=2).save(name, format)


def imread(name, flatten=False, mode=None):
    """Reads a picture: uint8 [height, width] or [height, width, channels]; with `flatten`, the
    brightness, float32."""
    from PIL import Image

    image = Image.open(name)
    return np.array(
        image.convert('F' if flatten else mode or ('RGB' if image.mode == 'P' else image.mode))
    )


def imresize(arr, size, interp='bilinear', mode=None):
    """Resizes an array, scaled as by `toimage`, to a percentage (int), a fraction (float), or
    height and width."""
    from PIL import Image

    image = toimage(arr, mode=mode)
    if np.ndim(size):
        height, width = [int(number) for number in size[:2]]
    else:
        factor = size / 100 if isinstance(size, (int, np.integer)) else size
        height, width = int(image.height * factor), int(image.width * factor)
    return np.array(
        image.resize(
            (width, height), getattr(Image, 'BICUBIC' if interp == 'cubic' else interp.upper())
        )
    )


class _Loader(importlib.abc.Loader):
    """Adds the functions to the module that another loader, if there is one, loads."""

    def __init__(self, loader):
        self._loader = loader

    def exec_module(self, module):
        """Loads the module, and adds the functions that it is without."""
        if self._loader:
            self._loader.exec_module(module)
        for function in (toimage, imsave, imread, imresize):
            vars(module).setdefault(function.__name__, function)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds scipy.misc, also where SciPy has no such module any more."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the spec of scipy.misc; None for others."""
        if fullname != 'scipy.misc':
            return None
        spec = importlib.machinery.PathFinder.find_spec(
            fullname, path
        ) or importlib.machinery.ModuleSpec(fullname, None)
        spec.loader = _Loader(spec.loader)
        return spec


def install():
    """Makes `import scipy.misc` give these functions from now on, in this process, if SciPy is
    installed without them."""
    sys.meta_path.insert(0, _Finder())
