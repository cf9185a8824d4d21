"""The function `imresize` that SciPy has removed from `scipy.misc`, on Pillow."""

import numpy as np

_RESAMPLING = {'nearest': 0, 'lanczos': 1, 'bilinear': 2, 'bicubic': 3, 'cubic': 3}  # of Pillow


def imresize(arr, size, interp='bilinear'):
    """Resize an image array [height, width], or with 3 or 4 channels as the last axis, to uint8.

    Other types than uint8 are scaled, so that the minimum becomes 0 and the maximum 255. `size` is
    a percentage (int), a fraction (float), or (height, width).
    """
    from PIL import Image

    arr = np.asarray(arr)
    if arr.dtype != np.uint8:
        low, high = arr.min(), arr.max()
        arr = ((arr - low) * (255.0 / (high - low or 1)) + 0.5).astype(np.uint8)
    if np.ndim(size):
        height, width = [int(number) for number in size[:2]]
    else:
        factor = size / 100 if isinstance(size, (int, np.integer)) else size
        height, width = int(arr.shape[0] * factor), int(arr.shape[1] * factor)
    return np.array(Image.fromarray(arr).resize((width, height), _RESAMPLING[interp]))
