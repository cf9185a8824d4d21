"""The image functions that SciPy has removed from `scipy.misc`, on Pillow."""

import numpy as np


def toimage(arr, *, cmin=None, cmax=None, mode=None, channel_axis=None):
    """Convert an array to a PIL.Image.Image.

    Args:
      arr: [height, width], or with an axis of 3 or 4 channels. Unless it is uint8, its values are
        scaled to 0 to 255.
      cmin: the value that becomes 0; None means the minimum.
      cmax: the value that becomes 255; None means the maximum.
      mode: PIL mode of the result; None means no conversion. 'F' does not scale [height, width].
      channel_axis: axis of the channels; None means the first one of size 3, else of size 4.

    Raises:
      ValueError: the array has no axis of channels.
    """
    from PIL import Image

    arr = np.asarray(arr)
    if mode == 'F' and arr.ndim == 2:
        return Image.fromarray(arr.astype(np.float32))
    if arr.ndim == 3:
        if channel_axis is None:
            channel_axis = arr.shape.index(3 if 3 in arr.shape else 4)
        arr = np.moveaxis(arr, channel_axis, 2)
    if arr.dtype != np.uint8:
        cmin, cmax = arr.min() if cmin is None else cmin, arr.max() if cmax is None else cmax
        scaled = (arr * 1.0 - cmin) * 255 / (cmax - cmin or 1)
        arr = (np.clip(scaled, 0, 255) + 0.5).astype(np.uint8)
    image = Image.fromarray(arr)
    return image.convert(mode) if mode else image


def imsave(name, arr, format=None):
    """Write an array as an image; see `toimage`."""
    toimage(arr, channel_axis=2).save(name, format)


def imread(name, flatten=False, mode=None):
    """Read an image: uint8 [height, width] or [height, width, channels].

    With `flatten`, return the brightness, float32 [height, width].
    """
    from PIL import Image

    image = Image.open(name)
    return np.array(
        image.convert('F' if flatten else mode or ('RGB' if image.mode == 'P' else image.mode))
    )


def imresize(arr, size, interp='bilinear', mode=None):
    """Resize an image array, converted by `toimage`.

    `size` is a percentage (int), a fraction (float), or (height, width).
    """
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
