"""Decoding of image files, against NumPy."""

import os
import sys

import numpy as np
from PIL import Image
import pytest

from cifar10.data import decoding
from tests.helpers import messages, pictures
from tests.helpers.image_files import DAMAGED, SMALL, decode, photograph
from tests.helpers.pictures import encoded, noise, smooth


def _decode_one(tmp_path, content):
    """Return the only image, [32, 32, 3]."""
    found = decode(tmp_path, {'image': content})
    assert found.failures == []
    return found.images[0].transpose(1, 2, 0)


@pytest.mark.parametrize(
    'height, width',
    [
        (32, 32),
        (40, 90),
        (90, 41),
        (33, 32),
        (31, 31),
        (5, 7),
        (1, 1),
        (1, 200),
        (10, 10000),
        (10000, 10),
        (300, 401),
    ],
)
def test_the_central_square_is_scaled_with_a_triangle_filter(tmp_path, height, width):
    """Pillow rounds after the rows and after the columns."""
    image = noise(height, width)
    difference = _decode_one(tmp_path, encoded(image, 'PNG')) - pictures.scaled(np.asarray(image))
    assert np.abs(difference).max() < (1e-9 if height == width == 32 else 1.01)


def _on_white(pixels, alpha):
    """Blend [32, 32, 3] with white."""
    return np.rint(255 + (pixels.astype(np.float64) - 255) * alpha[..., None] / 255)


def _rgb(grey):
    return np.stack([grey] * 3, -1)


def _palette(image):
    """Return the colours, [256, 3], of a palette image, and its indices."""
    colors = np.zeros([256, 3])
    palette = np.reshape(image.getpalette(), [-1, 3])
    colors[: len(palette)] = palette
    return colors, np.asarray(image)


def _kinds():
    """Yield (name, content, expected pixels [32, 32, 3]) for each kind of pixels, without loss."""
    color, grey, bits = noise(32, 32), noise(32, 32, 'L'), noise(32, 32, 'L').convert('1')
    yield 'grey', encoded(grey, 'PNG'), _rgb(np.asarray(grey))
    yield 'bits', encoded(bits, 'PNG'), _rgb(np.asarray(bits) * 255)
    for kind, options in [('PNG', {}), ('BMP', {}), ('WEBP', {'lossless': True})]:
        yield kind, encoded(color, kind, **options), np.asarray(color)
    with_alpha = noise(32, 32, 'RGBA')
    pixels = np.asarray(with_alpha)
    for kind, options in [('PNG', {}), ('WEBP', {'lossless': True})]:
        expected = _on_white(pixels[..., :3], pixels[..., 3])
        yield f'{kind} with alpha', encoded(with_alpha, kind, **options), expected
    grey_alpha = noise(32, 32, 'LA')
    pixels = np.asarray(grey_alpha)
    expected = _on_white(_rgb(pixels[..., 0]), pixels[..., 1])
    yield 'grey with alpha', encoded(grey_alpha, 'PNG'), expected
    for number in (4, 16, 200):
        image = color.quantize(number)
        colors, indices = _palette(image)
        for kind in ('PNG', 'GIF', 'BMP'):
            yield f'{kind} with {number} colours', encoded(image, kind), colors[indices]
        colors[1] = 255
        yield 'transparent', encoded(image, 'PNG', transparency=1), colors[indices]
    first, second = color.quantize(64), noise(32, 32, seed=1).quantize(64)
    colors, indices = _palette(first)
    for kind, options in [('GIF', {}), ('PNG', {}), ('WEBP', {'lossless': True})]:
        options = dict(options, save_all=True, append_images=[second])
        yield f'animated {kind}', encoded(first, kind, **options), colors[indices]


KINDS = list(_kinds())


@pytest.mark.parametrize('name, content, expected', KINDS, ids=[name for name, *_ in KINDS])
def test_the_kinds_of_pixels(tmp_path, name, content, expected):
    """An image of 32 x 32 pixels keeps each bit."""
    np.testing.assert_array_equal(_decode_one(tmp_path, content), expected)


@pytest.mark.parametrize('mode', ['RGB', 'L', 'CMYK'])
def test_jpeg(tmp_path, mode):
    """Pillow decodes it. CMYK values are the shares of the inks."""
    content = encoded(noise(32, 32, mode), 'JPEG', quality=95)
    (tmp_path / 'decoded').write_bytes(content)
    with Image.open(str(tmp_path / 'decoded')) as image:
        pixels = np.asarray(image).astype(int)
    expected = pixels if mode == 'RGB' else _rgb(pixels)
    if mode == 'CMYK':
        expected = (255 - pixels[..., :3]) * (255 - pixels[..., 3:]) / 255
    difference = _decode_one(tmp_path, content) - expected
    assert np.abs(difference).max() <= (0.51 if mode == 'CMYK' else 0)


# Orientation of EXIF -> how the stored pixels are to be shown (CIPA DC-008)
_TURNS = {
    1: lambda pixels: pixels,
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: np.rot90(np.fliplr(pixels)),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.rot90(np.fliplr(pixels), -1),
    8: np.rot90,
}


@pytest.mark.parametrize('orientation', [*_TURNS, 0, 9])
def test_the_orientation_of_a_photograph(tmp_path, orientation):
    """Turning and scaling exchange rows and columns, and so the order of rounding."""
    upright = _decode_one(tmp_path, photograph(1)).astype(int)
    expected = _TURNS.get(orientation, _TURNS[1])(upright)
    assert orientation in (0, 1, 9) or np.abs(expected - upright).max() > 20
    difference = _decode_one(tmp_path, photograph(orientation)) - expected
    assert np.abs(difference).max() <= 1


def test_damaged_files_are_named_and_the_others_decoded(tmp_path):
    contents = {name: content for name, (content, _) in DAMAGED.items()}
    found = decode(tmp_path, dict({'first': SMALL['png']}, **dict(contents, last=SMALL['bmp'])))
    assert found.indices == [0, len(DAMAGED) + 1]
    expected = np.asarray(noise(32, 32)).transpose(2, 0, 1)
    np.testing.assert_array_equal(found.images, [expected] * 2)
    reasons = {os.path.basename(path): reason for path, reason in found.failures}
    assert set(reasons) == set(DAMAGED)
    for name, (_, reason) in DAMAGED.items():
        assert reasons[name].startswith(reason) and '\n' not in reasons[name], reasons[name]


@pytest.mark.parametrize('kind', ['JPEG', 'PNG', 'GIF', 'BMP', 'WEBP'])
def test_a_truncated_file_is_named(tmp_path, kind):
    """At any length, unless all pixels are there, as in a file without its end marker."""
    content = encoded(smooth(60, 40), kind)
    whole = decode(tmp_path, {'whole': content}).images
    lengths = np.random.RandomState(0).randint(0, len(content), 50)
    found = decode(tmp_path, {str(i): content[:length] for i, length in enumerate(lengths)})
    assert len(found.failures) >= 45
    for image in found.images:
        np.testing.assert_array_equal(image, whole[0])


def test_the_order_of_many_files(tmp_path, monkeypatch):
    """They are decoded in chunks, in parallel."""
    monkeypatch.setattr(decoding, '_CHUNK_FILES', 7)
    contents = {
        f'{i:02}': encoded(Image.new('RGB', (32, 32 + i % 3), (i, 0, 0)), 'PNG') for i in range(60)
    }
    found = decode(tmp_path, contents)
    assert found.indices == list(range(60))
    assert found.images[:, 0, 0, 0].tolist() == list(range(60))
    assert max(len(part.indices) for part in decoding.decode([str(tmp_path / '00')] * 20)) == 7


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, 'PIL', None)
    with messages.raises('needs Pillow: pip install Pillow$'):
        next(decoding.decode(['x']))
