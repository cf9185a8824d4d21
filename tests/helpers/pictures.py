"""Folders of pictures, drawn and decoded by Pillow, which comes with matplotlib."""

import io
import os

import numpy as np
from PIL import Image, ImageOps


def noise(height, width, mode='RGB', seed=0):
    """A picture of random pixels."""
    bands = len(Image.new(mode, [1, 1]).getbands())
    values = np.random.RandomState(seed).randint(0, 256, [height, width, bands]).astype(np.uint8)
    return Image.frombytes(mode, (width, height), values.tobytes())


def smooth(height, width, seed=0):
    """A picture that JPEG keeps well."""
    return noise(3, 3, seed=seed).resize((width, height), Image.BICUBIC)


def encoded(picture, kind, **options):
    """The bytes of a file."""
    content = io.BytesIO()
    picture.save(content, kind, **options)
    return content.getvalue()


def write(folders, names, count, size=(32, 32)):
    """Writes folders/NAME/0.png and so on: each class has its own colour, with noise; returns the
    path of the folders."""
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
    """What conversion makes of the bytes of a file, by Pillow: uint8 [3, 32, 32]."""
    picture = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    if (
        picture.mode in ('LA', 'RGBA')
        or 'transparency' in picture.info
        and content.startswith(b'\x89PNG')
    ):
        picture = picture.convert('RGBA')
        picture = Image.alpha_composite(Image.new('RGBA', picture.size, 'white'), picture)
    picture = picture.convert('RGB')
    width, height = picture.size
    short = min(width, height)
    left, top = (width - short) / 2, (height - short) / 2
    return np.asarray(
        picture.resize((32, 32), Image.BILINEAR, (left, top, left + short, top + short))
    ).transpose(2, 0, 1)
