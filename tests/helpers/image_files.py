"""Image files of all formats, made by Pillow: valid, rotated and damaged."""

import io

import numpy as np
from PIL import Image

from cifar10.data import decoding
from tests.helpers import messages
from tests.helpers.pictures import encoded, noise, smooth


def decode(directory, contents):
    """Decode files with these {name: content}; return one DecodedImages."""
    paths = []
    for name, content in contents.items():
        (directory / name).write_bytes(content)
        paths.append(str(directory / name))
    images, indices, failures = zip(*decoding.decode(paths, 2))
    return decoding.DecodedImages(np.concatenate(images), sum(indices, []), sum(failures, []))


def photograph(orientation):
    """Return a 48 x 80 JPEG file with an EXIF header."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = 'a maker', orientation
    return encoded(smooth(48, 80), 'JPEG', quality=95, exif=exif.tobytes())


def _animated():
    content = io.BytesIO()
    first, second = noise(40, 30).quantize(64), noise(40, 30, seed=1).quantize(64)
    first.save(content, 'GIF', save_all=True, append_images=[second])
    return content.getvalue()


def _upside_down_bmp():
    """Return a BMP file with a negative height: rows from top to bottom."""
    content = encoded(noise(40, 32), 'BMP')
    height = (-40 & 0xFFFFFFFF).to_bytes(4, 'little')
    rows = [content[54 + 96 * i : 54 + 96 * (i + 1)] for i in range(40)]
    return content[:22] + height + content[26:54] + b''.join(reversed(rows))


SMALL = {  # 32 x 32: not scaled, so that Pillow's pixels are equal
    'jpeg': encoded(smooth(32, 32), 'JPEG', quality=75),
    'noise': encoded(noise(32, 32), 'JPEG', quality=75, subsampling=0),
    'grey jpeg': encoded(noise(32, 32, 'L'), 'JPEG'),
    'progressive': encoded(smooth(32, 32), 'JPEG', progressive=True),
    'png': encoded(noise(32, 32), 'PNG'),
    'grey png': encoded(noise(32, 32, 'L'), 'PNG'),
    'palette': encoded(noise(32, 32).quantize(200), 'PNG'),
    'few colours': encoded(noise(32, 32).quantize(4), 'PNG'),
    'one bit': encoded(noise(32, 32, 'L').convert('1'), 'PNG'),
    'alpha': encoded(noise(32, 32, 'RGBA'), 'PNG'),
    'grey alpha': encoded(noise(32, 32, 'LA'), 'PNG'),
    'transparent colour': encoded(noise(32, 32).quantize(4), 'PNG', transparency=1),
    'gif': encoded(noise(32, 32).quantize(64), 'GIF'),
    'bmp': encoded(noise(32, 32), 'BMP'),
}
SCALED = {
    'wide': encoded(noise(40, 90), 'PNG'),
    'tall': encoded(noise(90, 41), 'PNG'),
    'one more': encoded(noise(33, 32), 'PNG'),
    'one less': encoded(noise(31, 31), 'PNG'),
    'tiny': encoded(noise(5, 7), 'PNG'),
    'one pixel': encoded(noise(1, 1), 'PNG'),
    'line': encoded(noise(1, 200), 'PNG'),
    'very wide': encoded(noise(10, 10000), 'PNG'),
    'very tall': encoded(noise(10000, 10), 'PNG'),
    'photograph': encoded(smooth(480, 640), 'JPEG', quality=90),
    'cmyk': encoded(noise(50, 50, 'CMYK'), 'JPEG', quality=95),
    'animated': _animated(),
    'upside down': _upside_down_bmp(),
}
_DAMAGE = 'the image is damaged or incomplete ('
DAMAGED = {
    'zero bytes': (b'', messages.NOT_AN_IMAGE),
    'text.jpg': (b'hello', messages.NOT_AN_IMAGE),
    'cut.jpg': (SMALL['noise'][:1000], _DAMAGE),
    'cut early.jpg': (SMALL['jpeg'][:400], 'it is a JPEG file that ends'),
    'cut.png': (SMALL['png'][:500], _DAMAGE),
    'cut.gif': (SMALL['gif'][:300], ''),  # message of Pillow 9.5 or TensorFlow
    'cut.bmp': (SMALL['bmp'][:70], _DAMAGE),
    'palette.bmp': (encoded(noise(32, 32).quantize(16), 'BMP'), 'it is a BMP file without 24'),
    'alpha.bmp': (encoded(noise(32, 32, 'RGBA'), 'BMP'), 'it is a BMP file without 24 bits'),
}
