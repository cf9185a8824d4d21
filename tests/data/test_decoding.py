"""Image files of every kind, against Pillow."""
import io
import os

import numpy as np
from PIL import Image
import pytest

from cifar10.data import decoding
from tests.helpers import pictures, special_files
from tests.helpers.pictures import encoded, noise, smooth
from tests.helpers.special_files import deadline  # noqa: F401


@pytest.fixture(scope='module')
def decoder():
    with decoding.Decoder(2) as decoder:
        yield decoder


def _decode(decoder, directory, contents):
    """What is made of files with these contents, given by name: a Decoded with all of them."""
    paths = []
    for name, content in contents.items():
        (directory / name).write_bytes(content)
        paths.append(str(directory / name))
    parts = list(decoder.decode(paths))
    return decoding.Decoded(np.concatenate([part.images for part in parts]), sum([list(part.places) for part in parts], []),
                            sum([part.failures for part in parts], []))


def _animated():
    content = io.BytesIO()
    first, second = noise(40, 30).quantize(64), noise(40, 30, seed=1).quantize(64)
    first.save(content, 'GIF', save_all=True, append_images=[second])
    return content.getvalue()


def _upside_down_bmp():
    """The same rows, in the other order, with a negative height."""
    content = encoded(noise(40, 32), 'BMP')
    height = (-40 & 0xFFFFFFFF).to_bytes(4, 'little')
    rows = [content[54 + 96 * i:54 + 96 * (i + 1)] for i in range(40)]
    return content[:22] + height + content[26:54] + b''.join(reversed(rows))


def _masked_bmp(masks):
    """With a header that says which bits are which colour."""
    plain = encoded(noise(32, 32, 'RGBA'), 'BMP')
    header, pixels = bytearray(plain[:54]), plain[-32 * 32 * 4:]
    header[2:6] = (54 + 12 + len(pixels)).to_bytes(4, 'little')
    header[10:14], header[30:34] = (54 + 12).to_bytes(4, 'little'), (3).to_bytes(4, 'little')
    return bytes(header) + masks + pixels


SMALL = {  # 32 x 32: nothing is scaled, so that Pillow's bytes are ours
    'jpeg': encoded(smooth(32, 32), 'JPEG', quality=75), 'noise': encoded(noise(32, 32), 'JPEG', quality=75, subsampling=0),
    'grey jpeg': encoded(noise(32, 32, 'L'), 'JPEG'), 'progressive': encoded(smooth(32, 32), 'JPEG', progressive=True),
    'png': encoded(noise(32, 32), 'PNG'), 'grey png': encoded(noise(32, 32, 'L'), 'PNG'),
    'palette': encoded(noise(32, 32).quantize(200), 'PNG'), 'few colours': encoded(noise(32, 32).quantize(4), 'PNG'),
    'one bit': encoded(noise(32, 32, 'L').convert('1'), 'PNG'), 'alpha': encoded(noise(32, 32, 'RGBA'), 'PNG'),
    'grey alpha': encoded(noise(32, 32, 'LA'), 'PNG'),
    'transparent colour': encoded(noise(32, 32).quantize(4), 'PNG', transparency=1),
    'transparent grey': encoded(noise(32, 32, 'L'), 'PNG', transparency=7),
    'gif': encoded(noise(32, 32).quantize(64), 'GIF'), 'bmp': encoded(noise(32, 32), 'BMP'),
    'bmp alpha': encoded(noise(32, 32, 'RGBA'), 'BMP'), 'grey bmp': encoded(noise(32, 32, 'L'), 'BMP')}
SCALED = {
    'wide': encoded(noise(40, 90), 'PNG'), 'tall': encoded(noise(90, 41), 'PNG'), 'one more': encoded(noise(33, 32), 'PNG'),
    'one less': encoded(noise(31, 31), 'PNG'), 'tiny': encoded(noise(5, 7), 'PNG'), 'one pixel': encoded(noise(1, 1), 'PNG'),
    'line': encoded(noise(1, 200), 'PNG'), 'very wide': encoded(noise(10, 10000), 'PNG'),
    'very tall': encoded(noise(10000, 10), 'PNG'),
    'photograph': encoded(smooth(480, 640), 'JPEG', quality=90), 'cmyk': encoded(noise(50, 50, 'CMYK'), 'JPEG', quality=95),
    'animated': _animated(), 'upside down': _upside_down_bmp()}


def test_small_images_are_what_pillow_reads(decoder, tmp_path):
    found = _decode(decoder, tmp_path, SMALL)
    assert found.failures == [] and found.places == list(range(len(SMALL)))
    for name, image in zip(SMALL, found.images):
        np.testing.assert_array_equal(image, pictures.expected(SMALL[name]), name)


def test_others_are_scaled_on_the_short_side_and_cropped_at_the_centre(decoder, tmp_path):
    """Pillow rounds after the rows, and again after the columns."""
    found = _decode(decoder, tmp_path, SCALED)
    assert found.failures == []
    for name, image in zip(SCALED, found.images):
        difference = image - pictures.expected(SCALED[name]).astype(int)
        assert np.abs(difference).max() <= 2 and np.abs(difference.mean()) < 0.5, name


def test_16_bits_keep_the_high_byte(decoder, tmp_path):
    values = np.random.RandomState(0).randint(0, 65536, [32, 32]).astype(np.uint16)
    found = _decode(decoder, tmp_path, {'deep': encoded(Image.fromarray(values), 'PNG')})
    np.testing.assert_array_equal(found.images[0], np.stack([values >> 8] * 3))


@pytest.mark.parametrize('orientation', range(1, 9))
@pytest.mark.parametrize('order', ['<', '>'])
def test_the_orientation_of_a_photograph(decoder, tmp_path, orientation, order):
    picture = smooth(48, 80)
    exif = Image.Exif()
    exif.endian = order
    exif[0x010F], exif[0x0112] = 'a maker', orientation
    content = encoded(picture, 'JPEG', quality=95, exif=exif.tobytes())
    wanted = pictures.expected(content).astype(int)
    assert np.abs(_decode(decoder, tmp_path, {'photo': content}).images[0] - wanted).max() <= 2
    if orientation > 1:
        assert np.abs(wanted - pictures.expected(encoded(picture, 'JPEG', quality=95))).max() > 20


@pytest.mark.parametrize('at', [2, 4, 6, 12, 14, 18, 20, 22, 30])
def test_a_damaged_exif_header_is_no_orientation(decoder, tmp_path, at):
    exif = Image.Exif()
    exif[0x0112] = 6
    content = bytearray(encoded(smooth(32, 32), 'JPEG', exif=exif.tobytes()))
    start = content.index(b'Exif')
    content[start + at:start + at + 2] = b'\xff\xff'
    found = _decode(decoder, tmp_path, {'photo': bytes(content), 'without': encoded(smooth(32, 32), 'JPEG')})
    assert found.failures == []
    if at <= 12:  # its name, the byte order, or where the entries are
        np.testing.assert_array_equal(found.images[0], found.images[1])


DAMAGED = {
    'zero bytes': (b'', 'it is empty'), 'text.jpg': (b'hello', 'it is no JPEG, PNG, GIF or BMP file'),
    'cut.jpg': (SMALL['noise'][:1000], 'Invalid JPEG data'), 'cut early.jpg': (SMALL['jpeg'][:400], 'ends before the image'),
    'cut.png': (SMALL['png'][:500], 'Invalid PNG data'),
    'cut.gif': (SMALL['gif'][:60], 'Invalid GIF data'), 'cut.bmp': (SMALL['bmp'][:70], ''),
    'palette.bmp': (encoded(noise(32, 32).quantize(16), 'BMP'), 'it is a BMP file of a kind'),
    'one bit.bmp': (encoded(noise(32, 32, 'L').convert('1'), 'BMP'), 'it is a BMP file of a kind'),
    'only a start.jpg': (b'\xff\xd8', 'ends before the image'), 'only a start.bmp': (b'BM', 'it is a BMP file of a kind'),
    'red first.bmp': (_masked_bmp(b'\xff\0\0\0' b'\0\xff\0\0' b'\0\0\xff\0'), 'it is a BMP file of a kind')}


def test_damaged_files_are_named_and_the_others_decoded(decoder, tmp_path):
    contents = dict({'first': SMALL['png']}, **{name: content for name, (content, _) in DAMAGED.items()})
    found = _decode(decoder, tmp_path, dict(contents, last=SMALL['jpeg']))
    assert found.places == [0, len(DAMAGED) + 1]
    np.testing.assert_array_equal(found.images, [pictures.expected(SMALL['png']), pictures.expected(SMALL['jpeg'])])
    told = {os.path.basename(path): reason for path, reason in found.failures}
    assert set(told) == set(DAMAGED)
    for name, (_, reason) in DAMAGED.items():
        assert reason.lower() in told[name].lower() and '\n' not in told[name], told[name]


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_what_is_no_file_is_not_waited_for(decoder, tmp_path, kind):
    special_files.make(tmp_path / 'x', kind)
    (part,) = decoder.decode([str(tmp_path / 'x')])
    (path, reason), = part.failures
    told = {'a directory': 'Is a directory', 'a socket': 'No such device or address'}  # which cannot be opened or read
    assert path == str(tmp_path / 'x') and reason == told.get(kind, 'it is %s' % kind)


def test_links(decoder, tmp_path):
    (tmp_path / 'file').write_bytes(SMALL['png'])
    (tmp_path / 'link').symlink_to('file')
    (tmp_path / 'broken').symlink_to('nothing')
    (part,) = decoder.decode([str(tmp_path / 'link'), str(tmp_path / 'broken')])
    assert part.places == [0] and part.failures == [(str(tmp_path / 'broken'), 'No such file or directory')]


def test_the_order_of_many_files(decoder, tmp_path, monkeypatch):
    """Several chunks at a time, by the number of files and by their bytes."""
    monkeypatch.setattr(decoding, '_CHUNK_FILES', 7)
    monkeypatch.setattr(decoding, '_CHUNK_BYTES', 3000)
    contents = {'%02d' % i: encoded(Image.new('RGB', (32, 32 + i % 3), (i, 0, 0)), 'PNG') for i in range(60)}
    contents['31'] = noise_file = encoded(noise(32, 32), 'PNG')
    assert len(noise_file) > 3000
    found = _decode(decoder, tmp_path, contents)
    assert found.places == list(range(60))
    assert [image[0, 0, 0] for i, image in enumerate(found.images) if i != 31] == [i for i in range(60) if i != 31]


def test_a_file_that_is_no_image_is_not_read_whole(decoder, tmp_path):
    """200 GB without a block on the disk: a film, and a JPEG file by its first bytes."""
    paths = [str(tmp_path / name) for name in ('film.mov', 'huge.jpg')]
    for path, start in zip(paths, (b'moov', b'\xff\xd8\xff\xe0')):
        with open(path, 'wb') as opened:
            opened.write(start)
            opened.truncate(200 * 10 ** 9)
    (part,) = decoder.decode(paths)
    assert part.failures == list(zip(paths, ['it is no JPEG, PNG, GIF or BMP file', 'it is larger than 256 MB']))


def test_a_file_that_must_not_be_read(decoder, tmp_path, monkeypatch):
    """Root may read everything: the error is made."""
    (tmp_path / 'x.png').write_bytes(SMALL['png'])

    def refused(path, flags):
        raise PermissionError(13, 'Permission denied', path)
    monkeypatch.setattr(os, 'open', refused)
    (part,) = decoder.decode([str(tmp_path / 'x.png')])
    assert part.failures == [(str(tmp_path / 'x.png'), 'Permission denied')] and len(part.images) == 0
