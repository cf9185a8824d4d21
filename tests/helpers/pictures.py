"""Image files, made and decoded by Pillow."""

import io
import os

import numpy as np
from PIL import Image, ImageOps


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


def expected(content):
    """Convert the bytes of an image file by Pillow to uint8 [3, 32, 32]."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    if (
        image.mode in ('LA', 'RGBA')
        or 'transparency' in image.info
        and content.startswith(b'\x89PNG')
    ):
        image = image.convert('RGBA')
        image = Image.alpha_composite(Image.new('RGBA', image.size, 'white'), image)
    image = image.convert('RGB')
    width, height = image.size
    short = min(width, height)
    left, top = (width - short) / 2, (height - short) / 2
    return np.asarray(
        image.resize((32, 32), Image.BILINEAR, (left, top, left + short, top + short))
    ).transpose(2, 0, 1)
