"""Decoding of image files, against Pillow."""

import os
import sys

import numpy as np
from PIL import Image
import pytest

from cifar10.data import decoding
from tests.helpers import messages, pictures
from tests.helpers.image_files import (
    DAMAGED,
    SCALED,
    SMALL,
    decode,
    oriented_files,
    oriented_png_files,
    photograph,
    with_extraneous_bytes,
)
from tests.helpers.pictures import encoded


def test_images_match_pillow(tmp_path):
    """TensorFlow uses another JPEG transform. Pillow rounds after rows and after columns."""
    contents = dict(SMALL, **SCALED)
    found = decode(tmp_path, contents)
    assert found.failures == [] and found.indices == list(range(len(contents)))
    for name, image in zip(contents, found.images):
        difference = image - pictures.expected(contents[name]).astype(int)
        most = 0 if name in SMALL else 2
        is_jpeg = contents[name].startswith(b'\xff\xd8')
        assert np.abs(difference).max() <= (6 if is_jpeg else most), name
        assert np.abs(difference.mean()) < 1, name


def test_16_bits_keep_the_high_byte(tmp_path):
    values = np.random.RandomState(0).randint(0, 65536, [32, 32]).astype(np.uint16)
    found = decode(tmp_path, {'deep': encoded(Image.fromarray(values), 'PNG')})
    np.testing.assert_array_equal(found.images[0], np.stack([values >> 8] * 3))


def test_the_orientation_of_a_photograph(tmp_path):
    contents = {str(i): photograph(i) for i in range(10)}
    images = decode(tmp_path, contents).images.astype(int)
    for image, content in zip(images, contents.values()):
        assert np.abs(image - pictures.expected(content)).max() <= 5
    assert all(np.abs(image - images[1]).max() > 20 for image in images[2:9])
    np.testing.assert_array_equal(images[[0, 9]], images[[1, 1]])  # no such orientations


@pytest.mark.parametrize('orientation', range(1, 9))
def test_the_orientation_in_all_metadata(tmp_path, orientation):
    contents = oriented_files(orientation)
    found = decode(tmp_path, contents)
    assert found.failures == []
    for content, image in zip(contents.values(), found.images):
        most = 5 if content.startswith(b'\xff\xd8') else 0
        assert np.abs(image - pictures.expected(content).astype(int)).max() <= most


def test_all_kinds_of_png_metadata_turn_the_image(tmp_path):
    """The orientation 6 needs a quarter turn clockwise."""
    expected = np.rot90(pictures.expected(SMALL['png']), -1, axes=(1, 2))
    for image in decode(tmp_path, oriented_png_files(6)).images:
        np.testing.assert_array_equal(image, expected)


def test_files_without_metadata_do_not_need_pillow(tmp_path, monkeypatch):
    """Pillow takes longer than the decoder."""
    opened = []
    monkeypatch.setattr(Image, 'open', opened.append)
    decode(tmp_path, SMALL)
    assert not opened
    decode(tmp_path, {'photo': photograph(6)})
    assert len(opened) == 1


def test_messages_of_libjpeg_get_the_name_of_the_file(tmp_path, monkeypatch, capfd):
    """A file that cannot be decoded has a reason, and no message."""
    monkeypatch.setenv('TF_CPP_MIN_LOG_LEVEL', '3')
    contents = {f'{i:02}': SMALL['jpeg'] for i in range(30)}
    contents.update({'07': with_extraneous_bytes(195), '23': with_extraneous_bytes(20)})
    contents['15'], _ = DAMAGED['cut.jpg']
    found = decode(tmp_path, contents)
    assert [path for path, _ in found.failures] == [str(tmp_path / '15')]
    np.testing.assert_array_equal(found.images, [found.images[0]] * 29)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2, lines
    for line, name, count in zip(lines, ['07', '23'], [195, 20]):
        assert f': {tmp_path / name}: Corrupt JPEG data: {count} extraneous bytes' in line


@pytest.mark.parametrize('at', [2, 6, 12, 20])
def test_a_damaged_exif_header_does_not_matter(tmp_path, at, recwarn):
    content = bytearray(photograph(6))
    start = content.index(b'Exif')
    content[start + at : start + at + 2] = b'\xff\xff'
    found = decode(tmp_path, {'photo': bytes(content), 'upright': photograph(1)})
    assert found.failures == [] and not recwarn.list
    if at <= 12:  # name, byte order, or offset of the entries
        np.testing.assert_array_equal(found.images[0], found.images[1])


def test_damaged_files_are_named_and_the_others_decoded(tmp_path):
    contents = {name: content for name, (content, _) in DAMAGED.items()}
    found = decode(tmp_path, dict({'first': SMALL['png']}, **dict(contents, last=SMALL['gif'])))
    assert found.indices == [0, len(DAMAGED) + 1]
    wanted = [pictures.expected(SMALL[name]) for name in ('png', 'gif')]
    np.testing.assert_array_equal(found.images, wanted)
    reasons = {os.path.basename(path): reason for path, reason in found.failures}
    assert set(reasons) == set(DAMAGED)
    for name, (_, reason) in DAMAGED.items():
        assert reasons[name].startswith(reason) and '\n' not in reasons[name], reasons[name]


def test_the_order_of_many_files(tmp_path, monkeypatch):
    """They are decoded in chunks, in parallel."""
    monkeypatch.setattr(decoding, '_CHUNK_FILES', 7)
    contents = {
        f'{i:02}': encoded(Image.new('RGB', (32, 32 + i % 3), (i, 0, 0)), 'PNG') for i in range(60)
    }
    found = decode(tmp_path, contents)
    assert found.indices == list(range(60))
    assert found.images[:, 0, 0, 0].tolist() == list(range(60))
    assert max(len(part.indices) for part in decoding.decode([str(tmp_path / '00')] * 20, 2)) == 7


def test_huge_files_are_not_read_completely(tmp_path, monkeypatch):
    """Two sparse files of 200 GB: one starts like a film, one like an image."""
    monkeypatch.setattr(decoding, 'MAX_BYTES', 1 << 20)
    paths = [str(tmp_path / name) for name in ('film.mov', 'huge.png')]
    for path, start in zip(paths, (b'moov', SMALL['png'])):
        with open(path, 'wb') as opened:
            opened.write(start)
            opened.truncate(200 * 10**9)
    (part,) = decoding.decode(paths, 1)
    reasons = [messages.NOT_AN_IMAGE, 'it is larger than 1 MB']
    assert part.failures == list(zip(paths, reasons))


def test_a_large_photograph_is_turned(tmp_path, monkeypatch):
    """By default, Pillow refuses more than 179 million pixels."""
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 10)
    (tmp_path / 'photo').write_bytes(photograph(6))
    assert decoding.read(str(tmp_path / 'photo'))[1] == 6


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, 'PIL', None)
    with messages.raises('needs Pillow: pip install Pillow$'):
        next(decoding.decode(['x'], 1))
