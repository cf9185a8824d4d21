"""The image functions that SciPy has removed from `scipy.misc`, on Pillow."""

import numpy as np

_MODES = {(): 'L P I F', (3,): 'RGB YCbCr', (4,): 'RGBA CMYK'}  # of Pillow, by channels
_RESAMPLING = {'nearest': 0, 'lanczos': 1, 'bilinear': 2, 'bicubic': 3, 'cubic': 3}  # of Pillow


def bytescale(arr, cmin=None, cmax=None, high=255, low=0):
    """Return an array as uint8, scaled from [cmin, cmax] to [low, high], or unchanged if uint8.

    None means the minimum or the maximum of the array.

    Raises:
      ValueError: the limits are not in order, or not in [0, 255].
    """
    if arr.dtype == np.uint8:
        return arr
    cmin, cmax = arr.min() if cmin is None else cmin, arr.max() if cmax is None else cmax
    if not (0 <= low <= high <= 255 and cmin <= cmax):
        raise ValueError('bytescale needs cmin <= cmax and 0 <= low <= high <= 255')
    scaled = (arr - cmin) * ((high - low) / float(cmax - cmin or 1)) + low
    return (np.clip(scaled, low, high) + 0.5).astype(np.uint8)


def toimage(arr, high=255, low=0, cmin=None, cmax=None, pal=None, mode=None, channel_axis=None):
    """Convert an array to a PIL.Image.Image.

    Args:
      arr: [height, width], or with an axis of 3 or 4 channels.
      high: the greatest value of the image; see `bytescale`.
      low: the least value of the image.
      cmin: the value that becomes `low`.
      cmax: the value that becomes `high`.
      pal: palette of an image [height, width], [colors, 3].
      mode: PIL mode that the values are in: 'L', 'P', 'I', or 'F', which is not scaled; for 3
        channels 'RGB' or 'YCbCr', for 4 channels 'RGBA' or 'CMYK'. None means the first one.
      channel_axis: axis of the channels; None means the first one of size 3, else of size 4.

    Raises:
      ValueError: the array has another shape, or the mode is not one of this shape.
    """
    from PIL import Image

    arr = np.asarray(arr)
    if arr.ndim == 3:
        if channel_axis is None:
            channel_axis = np.argmax(np.isin(arr.shape, 3 if 3 in arr.shape else 4))
        arr = np.moveaxis(arr, channel_axis, 2)
    modes = _MODES.get(arr.shape[2:], '').split() if arr.ndim > 1 else []
    if not modes or mode not in [None, *modes]:
        raise ValueError(f'An array of the shape {arr.shape} is no image of the mode {mode}')
    if mode == 'F':
        return Image.fromarray(arr.astype(np.float32))
    if mode == 'I':
        cmin, cmax = arr.min() if cmin is None else cmin, arr.max() if cmax is None else cmax
        scaled = (arr * 1.0 - cmin) * (high - low) / (cmax - cmin or 1) + low
        return Image.fromarray(scaled.astype(np.int32))
    values = bytescale(arr, cmin, cmax, high, low)
    if mode == 'P' and pal is None:
        pal = np.repeat(np.arange(256), 3)
    mode = modes[0] if mode in (None, 'P') else mode
    image = Image.frombytes(mode, arr.shape[1::-1], values.tobytes())
    if pal is not None:
        image.putpalette(np.asarray(pal, np.uint8).tobytes())
    return image


def fromimage(im, flatten=False, mode=None):
    """Return an image as an array.

    Args:
      im: a PIL.Image.Image.
      flatten: True for the brightness, float32 [height, width].
      mode: PIL mode to which the image is converted first. None means no conversion; but colors
        replace a palette, and 0 and 255 replace bits.
    """
    if mode is None and im.mode == 'P':
        mode = 'RGBA' if 'transparency' in im.info else 'RGB'
    im = im.convert(mode or im.mode)
    if flatten or im.mode == '1':
        im = im.convert('F' if flatten else 'L')
    return np.array(im)


def imsave(name, arr, format=None):
    """Write an array [height, width] or [height, width, channels] as an image; see `toimage`."""
    toimage(arr, channel_axis=2).save(name, format)


def imread(name, flatten=False, mode=None):
    """Read an image: uint8 [height, width] or [height, width, channels]; see `fromimage`."""
    from PIL import Image

    return fromimage(Image.open(name), flatten, mode)


def imresize(arr, size, interp='bilinear', mode=None):
    """Resize an image array, converted by `toimage`.

    `size` is a percentage (int), a fraction (float), or (height, width).
    """
    image = toimage(arr, mode=mode)
    if np.ndim(size):
        height, width = [int(number) for number in size[:2]]
    else:
        factor = size / 100 if isinstance(size, (int, np.integer)) else size
        height, width = int(image.height * factor), int(image.width * factor)
    return fromimage(image.resize((width, height), _RESAMPLING[interp]))


def imrotate(arr, angle, interp='bilinear'):
    """Rotate an image array, converted by `toimage`, by degrees, counter-clockwise."""
    return fromimage(toimage(arr).rotate(angle, _RESAMPLING[interp]))
