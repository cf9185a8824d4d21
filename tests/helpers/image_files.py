"""Image files of all formats: valid, rotated and damaged."""

import contextlib
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
    images, indices, failures = zip(*decoding.decode(paths))
    return decoding.DecodedImages(np.concatenate(images), sum(indices, []), sum(failures, []))


def _exif(orientation):
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = 'a maker', orientation
    return exif.tobytes()


def photograph(orientation):
    """Return a 48 x 80 JPEG file with an EXIF header."""
    return encoded(smooth(48, 80), 'JPEG', quality=95, exif=_exif(orientation))


def _with_a_changed_byte():
    """Return a PNG file that Pillow decodes to other pixels if it does not verify the checksums."""
    image = smooth(32, 32)
    content = encoded(image, 'PNG')
    for position in range(content.index(b'IDAT') + 4, len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        with contextlib.suppress(Exception):  # A damaged file can raise any.
            with Image.open(io.BytesIO(changed)) as decoded:
                decoded.load()
            if decoded.tobytes() != image.tobytes():
                return bytes(changed)
    raise AssertionError('Pillow notices each change.')


SMALL = {  # 32 x 32
    'jpeg': encoded(smooth(32, 32), 'JPEG', quality=75),
    'png': encoded(noise(32, 32), 'PNG'),
    'gif': encoded(noise(32, 32).quantize(64), 'GIF'),
    'bmp': encoded(noise(32, 32), 'BMP'),
    'webp': encoded(noise(32, 32), 'WEBP', lossless=True),
}
_DAMAGE = 'the image is damaged or incomplete ('
DAMAGED = {
    'zero bytes': (b'', messages.NOT_AN_IMAGE),
    'text.jpg': (b'hello', messages.NOT_AN_IMAGE),
    'cut.jpg': (SMALL['jpeg'][:700], _DAMAGE),
    'cut early.jpg': (SMALL['jpeg'][:400], _DAMAGE),
    'cut.png': (SMALL['png'][:500], _DAMAGE),
    'cut.gif': (SMALL['gif'][:300], ''),  # Pillow 9.5 and later versions differ.
    'cut.bmp': (SMALL['bmp'][:70], _DAMAGE),
    'cut.webp': (SMALL['webp'][:700], _DAMAGE),
    'changed.png': (_with_a_changed_byte(), _DAMAGE),
}
