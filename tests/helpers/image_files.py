"""Image files of all formats, made by Pillow: valid, rotated and damaged."""

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
    images, indices, failures = zip(*decoding.decode(paths, 2))
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


def oriented_files(orientation):
    """Return the same, and files of other formats; Pillow finds no metadata in the GIF file."""
    xmp = b'http://ns.adobe.com/xap/1.0/\0<rdf:Description tiff:Orientation="%d"/>' % orientation
    jpeg = encoded(smooth(48, 80), 'JPEG', quality=95)
    segment = b'\xff\xe1' + struct.pack('>H', len(xmp) + 2) + xmp
    return {
        **oriented_png_files(orientation),
        'jpeg': photograph(orientation),
        'jpeg, XMP': jpeg[:2] + segment + jpeg[2:],
        'gif': encoded(noise(32, 32).quantize(64), 'GIF', comment=xmp),
    }


def with_extraneous_bytes(count):
    """Return a JPEG file about which libjpeg prints a message."""
    content = SMALL['jpeg']
    return content[:-2] + b'\x12' * count + content[-2:]


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
    'cut early.jpg': (SMALL['jpeg'][:400], _DAMAGE),
    'cut.png': (SMALL['png'][:500], _DAMAGE),
    'cut.gif': (SMALL['gif'][:300], ''),  # message of Pillow 9.5 or TensorFlow
    'cut.bmp': (SMALL['bmp'][:70], _DAMAGE),
    'palette.bmp': (encoded(noise(32, 32).quantize(16), 'BMP'), 'it is a BMP file without 24'),
    'alpha.bmp': (encoded(noise(32, 32, 'RGBA'), 'BMP'), 'it is a BMP file without 24 bits'),
}
