"""Image files, made by Pillow; scaling in NumPy."""

import io
import os

import numpy as np
from PIL import Image


def noise(height, width, mode='RGB', seed=0):
    """Return an image of random pixels."""
    bands = len(Image.new(mode, [1, 1]).getbands())
    values = np.random.RandomState(seed).randint(0, 256, [height, width, bands]).astype(np.uint8)
    return Image.frombytes(mode, (width, height), values.tobytes())


def smooth(height, width, seed=0):
    """Return a smooth image, which JPEG changes little."""
    return noise(3, 3, seed=seed).resize((width, height), Image.BICUBIC)


def encoded(image, kind, **options):
    """Return the image as the bytes of a file."""
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def write(folders, names, count, size=(32, 32)):
    """Write folders/NAME/0.png, ...: one colour per class, with noise. Return the path."""
    for label, name in enumerate(names):
        folder = os.path.join(str(folders), name)
        os.makedirs(folder)
        color = np.random.RandomState(label).randint(0, 256, 3)
        for i in range(count):
            rng = np.random.RandomState([label, i])
            values = np.clip(color + rng.normal(0, 20, list(size) + [3]), 0, 255).astype(np.uint8)
            Image.fromarray(values).save(os.path.join(folder, f'{i}.png'))
    return str(folders)


def scaled(pixels):
    """Return the central square of an image, [height, width, 3], as float64 [32, 32, 3].

    It is scaled with an antialiasing triangle filter.
    """
    square = min(pixels.shape[:2])
    weights = []
    for length in pixels.shape[:2]:
        centers = (length - square) / 2 + (np.arange(32) + 0.5) * square / 32
        distances = np.abs(np.arange(length) + 0.5 - centers[:, None])
        triangle = np.maximum(1 - distances / max(square / 32, 1), 0)
        weights.append(triangle / triangle.sum(1, keepdims=True))
    return np.einsum('ih,hwc,jw->ijc', weights[0], pixels, weights[1])
