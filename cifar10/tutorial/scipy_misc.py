"""The module `scipy.misc` for programs that save or read pictures.

Its four functions, which SciPy has removed, use Pillow.
"""

import numpy as np


def toimage(arr, *, cmin=None, cmax=None, mode=None, channel_axis=None):
    """Convert an array to a picture.

    Args:
      arr: [height, width], or with an axis of 3 or 4 channels. Unless it is uint8, its values are
        scaled to the range of bytes.
      cmin: the value that becomes 0; None takes the least one.
      cmax: the value that becomes 255; None takes the greatest one.
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
    """Write an array to a file, converted by `toimage`."""
    toimage(arr, channel_axis=2).save(name, format)


def imread(name, flatten=False, mode=None):
    """Read a picture: uint8 [height, width] or [height, width, channels].

    With `flatten` it is the brightness, float32.
    """
    from PIL import Image

    image = Image.open(name)
    return np.array(
        image.convert('F' if flatten else mode or ('RGB' if image.mode == 'P' else image.mode))
    )


def imresize(arr, size, interp='bilinear', mode=None):
    """Resize an array, scaled as by `toimage`.

    `size` is a percentage (int), a fraction (float), or height and width.
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
