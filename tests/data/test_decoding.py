"""Image files of every kind, against Pillow."""

import os

import numpy as np
from PIL import Image
import pytest

from cifar10.data import decoding
from tests.helpers import pictures, special_files
from tests.helpers.image_files import DAMAGED, SCALED, SMALL, decode, photograph
from tests.helpers.pictures import encoded, noise, smooth
from tests.helpers.special_files import deadline  # noqa: F401


@pytest.fixture(scope='module')
def decoder():
    with decoding.Decoder(2) as decoder:
        yield decoder


def test_small_images_are_what_pillow_reads(decoder, tmp_path):
    found = decode(decoder, tmp_path, SMALL)
    assert found.failures == [] and found.places == list(range(len(SMALL)))
    for name, image in zip(SMALL, found.images):
        np.testing.assert_array_equal(image, pictures.expected(SMALL[name]), name)


def test_others_are_scaled_on_the_short_side_and_cropped_at_the_centre(decoder, tmp_path):
    """Pillow rounds after the rows, and again after the columns."""
    found = decode(decoder, tmp_path, SCALED)
    assert found.failures == []
    for name, image in zip(SCALED, found.images):
        difference = image - pictures.expected(SCALED[name]).astype(int)
        assert np.abs(difference).max() <= 2 and np.abs(difference.mean()) < 0.5, name


def test_16_bits_keep_the_high_byte(decoder, tmp_path):
    values = np.random.RandomState(0).randint(0, 65536, [32, 32]).astype(np.uint16)
    found = decode(decoder, tmp_path, {'deep': encoded(Image.fromarray(values), 'PNG')})
    np.testing.assert_array_equal(found.images[0], np.stack([values >> 8] * 3))


@pytest.mark.parametrize('orientation', range(1, 9))
@pytest.mark.parametrize('order', ['<', '>'])
def test_the_orientation_of_a_photograph(decoder, tmp_path, orientation, order):
    content = photograph(orientation, order)
    wanted = pictures.expected(content).astype(int)
    assert np.abs(decode(decoder, tmp_path, {'photo': content}).images[0] - wanted).max() <= 2
    if orientation > 1:
        assert np.abs(wanted - pictures.expected(photograph(1, order))).max() > 20


@pytest.mark.parametrize('at', [2, 4, 6, 12, 14, 18, 20, 22, 30])
def test_a_damaged_exif_header_is_no_orientation(decoder, tmp_path, at):
    exif = Image.Exif()
    exif[0x0112] = 6
    content = bytearray(encoded(smooth(32, 32), 'JPEG', exif=exif.tobytes()))
    start = content.index(b'Exif')
    content[start + at : start + at + 2] = b'\xff\xff'
    found = decode(
        decoder, tmp_path, {'photo': bytes(content), 'without': encoded(smooth(32, 32), 'JPEG')}
    )
    assert found.failures == []
    if at <= 12:  # its name, the byte order, or where the entries are
        np.testing.assert_array_equal(found.images[0], found.images[1])


def test_damaged_files_are_named_and_the_others_decoded(decoder, tmp_path):
    contents = dict(
        {'first': SMALL['png']}, **{name: content for name, (content, _) in DAMAGED.items()}
    )
    found = decode(decoder, tmp_path, dict(contents, last=SMALL['jpeg']))
    assert found.places == [0, len(DAMAGED) + 1]
    np.testing.assert_array_equal(
        found.images, [pictures.expected(SMALL['png']), pictures.expected(SMALL['jpeg'])]
    )
    told = {os.path.basename(path): reason for path, reason in found.failures}
    assert set(told) == set(DAMAGED)
    for name, (_, reason) in DAMAGED.items():
        assert reason.lower() in told[name].lower() and '\n' not in told[name], told[name]
    # TensorFlow's words, which differ, come after the cause
    for name in ('cut.jpg', 'cut.png', 'cut.gif', 'cut.bmp'):
        assert told[name].startswith('the image is damaged or incomplete ('), told[name]


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_what_is_no_file_is_not_waited_for(decoder, tmp_path, kind):
    special_files.make(tmp_path / 'x', kind)
    (part,) = decoder.decode([str(tmp_path / 'x')])
    ((path, reason),) = part.failures
    # which cannot be opened or read
    told = {'a directory': 'it is a directory', 'a socket': 'No such device or address'}
    assert path == str(tmp_path / 'x') and reason == told.get(kind, 'it is %s' % kind)


def test_links(decoder, tmp_path):
    (tmp_path / 'file').write_bytes(SMALL['png'])
    (tmp_path / 'link').symlink_to('file')
    (tmp_path / 'broken').symlink_to('nothing')
    (part,) = decoder.decode([str(tmp_path / 'link'), str(tmp_path / 'broken')])
    assert part.places == [0] and part.failures == [
        (str(tmp_path / 'broken'), 'No such file or directory')
    ]


def test_the_order_of_many_files(decoder, tmp_path, monkeypatch):
    """Several chunks at a time, by the number of files and by their bytes."""
    monkeypatch.setattr(decoding, '_CHUNK_FILES', 7)
    monkeypatch.setattr(decoding, '_CHUNK_BYTES', 3000)
    contents = {
        '%02d' % i: encoded(Image.new('RGB', (32, 32 + i % 3), (i, 0, 0)), 'PNG') for i in range(60)
    }
    contents['31'] = noise_file = encoded(noise(32, 32), 'PNG')
    assert len(noise_file) > 3000
    found = decode(decoder, tmp_path, contents)
    assert found.places == list(range(60))
    assert [image[0, 0, 0] for i, image in enumerate(found.images) if i != 31] == [
        i for i in range(60) if i != 31
    ]


def test_a_file_that_is_no_image_is_not_read_whole(decoder, tmp_path):
    """200 GB without a block on the disk: a film, and a JPEG file by its first bytes."""
    paths = [str(tmp_path / name) for name in ('film.mov', 'huge.jpg')]
    for path, start in zip(paths, (b'moov', b'\xff\xd8\xff\xe0')):
        with open(path, 'wb') as opened:
            opened.write(start)
            opened.truncate(200 * 10**9)
    (part,) = decoder.decode(paths)
    assert part.failures == list(
        zip(paths, ['it is no JPEG, PNG, GIF or BMP file', 'it is larger than 256 MB'])
    )


def test_a_file_that_must_not_be_read(decoder, tmp_path, monkeypatch):
    """Root may read everything: the error is made."""
    (tmp_path / 'x.png').write_bytes(SMALL['png'])

    def refused(path, flags):
        raise PermissionError(13, 'Permission denied', path)

    monkeypatch.setattr(os, 'open', refused)
    (part,) = decoder.decode([str(tmp_path / 'x.png')])
    assert (
        part.failures == [(str(tmp_path / 'x.png'), 'Permission denied')] and len(part.images) == 0
    )
