"""Image files of all formats: valid, rotated and damaged."""

import contextlib
import io
import struct
import zlib

import numpy as np
from PIL import Image, PngImagePlugin

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


def oriented_png_files(orientation):
    """Return {name: content} of PNG files of one image, each with another kind of metadata."""
    image, exif = noise(32, 32), _exif(orientation)
    plain = encoded(image, 'PNG')
    data = b'eXIf' + exif[len(b'Exif\0\0') :]
    chunk = struct.pack('>I', len(data) - 4) + data + struct.pack('>I', zlib.crc32(data))
    end = plain.index(b'IEND') - 4
    xmp = f'<rdf:Description tiff:Orientation="{orientation}"/>'
    texts = {
        'raw profile': ('Raw profile type exif', f'\nexif\n{len(exif):8}\n{exif.hex()}\n'),
        'XMP': ('XML:com.adobe.xmp', xmp),
        'XMP element': (
            'XML:com.adobe.xmp',
            f'<tiff:Orientation>{orientation}</tiff:Orientation>',
        ),
    }
    files = {'chunk': encoded(image, 'PNG', exif=exif)}
    files['chunk after the image'] = plain[:end] + chunk + plain[end:]
    for name, (keyword, text) in texts.items():
        for is_compressed in False, True:
            info = PngImagePlugin.PngInfo()
            add = info.add_itxt if 'XMP' in name else info.add_text
            add(keyword, text, zip=is_compressed)
            name = f'{name}, compressed' if is_compressed else name
            files[name] = encoded(image, 'PNG', pnginfo=info)
    return files


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
