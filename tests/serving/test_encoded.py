"""Images from encoded bytes in the graph, against Pillow and against Decoder, which finds kinds and
EXIF headers in Python."""

import random
import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from cifar10.data import decoding, exif
from cifar10.serving import encoded
from tests.helpers import pictures
from tests.helpers.image_files import DAMAGED, SCALED, SMALL, decode, photograph
from tests.helpers.pictures import noise, smooth

TURNED = {
    '%d%s' % (turned, order): photograph(turned, order) for turned in range(1, 9) for order in '<>'
}
NO_IMAGE = 'no JPEG, PNG, GIF or BMP file'


@pytest.fixture(scope='module')
def run():
    """The function from contents to images, in a graph of its own."""
    with tf.Graph().as_default(), tf.Session() as session:
        contents = tf.placeholder(tf.string, [None])
        yield session.make_callable(encoded.small_images(contents), [contents])


@pytest.fixture(scope='module')
def decoder():
    with decoding.Decoder(2) as decoder:
        yield decoder


def test_a_mixed_batch(run, decoder, tmp_path):
    contents = dict(SMALL, **dict(SCALED, **TURNED))
    images = run(list(contents.values()))
    wanted = decode(decoder, tmp_path, contents)
    assert wanted.failures == [] and images.dtype == np.uint8
    for name, image, same in zip(contents, images, wanted.images):
        np.testing.assert_array_equal(image, same, name)
        difference = np.abs(image - pictures.expected(contents[name]).astype(int)).max()
        assert difference <= (0 if name in SMALL else 2), name


def test_odd_places_of_the_chunk_that_makes_a_png_transparent(run, decoder, tmp_path):
    """Its name may also be in the image, or in a text."""
    png = pictures.encoded(noise(32, 32).quantize(4), 'PNG')
    at = png.index(b'IDAT') - 4
    text = b'tRNS is a name: IDAT'
    chunk = len(text).to_bytes(4, 'big') + b'tEXt' + text + b'\x01\x3d\x6c\x8c'
    contents = {
        'before': png[:at] + chunk + png[at:],
        'after': png[:-12] + chunk + png[-12:],
        'without': png,
    }
    wanted = decode(decoder, tmp_path, contents)
    assert wanted.failures == []
    np.testing.assert_array_equal(run(list(contents.values())), wanted.images)


def test_no_files(run):
    images = run([])
    assert images.shape == (0, 3, 32, 32) and images.dtype == np.uint8


@pytest.mark.parametrize('name', sorted(DAMAGED))
def test_damaged_files(run, name):
    content, reason = DAMAGED[name]
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run([SMALL['png'], content, SMALL['jpeg']])
    if 'it is' in reason:
        assert NO_IMAGE in str(caught.value) and (
            '[1]' in str(caught.value) or name == 'palette.bmp'
        )


def _changed(content, rng, end):
    """The content with up to three of its first bytes changed, or cut among them."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        content[rng.randrange(min(end, len(content)))] = rng.choice(
            [0, 1, 2, 8, 12, 14, 32, 127, 128, 254, 255, rng.randrange(256)]
        )
    return bytes(content) if rng.random() < 0.8 else bytes(content[: rng.randrange(end)])


def test_changed_files_are_decoded_or_refused_alike(run, decoder, tmp_path):
    rng = random.Random(0)
    kinds = ['jpeg', 'png', 'alpha', 'transparent colour', 'gif', 'bmp', 'bmp alpha'] + 5 * [
        'grey bmp'
    ]
    contents = {
        str(i): _changed(SMALL[kind], rng, 1078 if i < 60 and 'grey' in kind else 54)
        for i, kind in enumerate(kinds * 20)
    }
    wanted = decode(decoder, tmp_path, contents)
    images = []
    for i, content in enumerate(contents.values()):
        try:
            (image,) = run([content])
            images.append((i, image))
        except tf.errors.InvalidArgumentError:
            pass
    assert [i for i, _ in images] == list(wanted.places) and 40 < len(images) < 200
    np.testing.assert_array_equal([image for _, image in images], wanted.images)


def test_the_palette_of_a_bmp_file(run, decoder, tmp_path):
    """Where it begins, the bytes 14 to 18, and how many colours it has, 46 to 50: also if the file
    ends before."""
    bmp = SMALL['grey bmp']
    contents = {
        '%d of %d' % (count, start): bmp[:14]
        + start.to_bytes(4, 'little')
        + bmp[18:46]
        + count.to_bytes(4, 'little')
        + bmp[50:]
        for start in [40, 41] + [len(bmp) - 14 - i for i in range(6)] + [(1 << 32) - 1]
        for count in (0, 1, 255, 256, 257, 1 << 16, 1 << 24, (1 << 32) - 1)
    }
    wanted = decode(decoder, tmp_path, contents)
    assert 4 < len(wanted.places) < len(contents) - 4
    for i, content in enumerate(contents.values()):
        if i in wanted.places:
            np.testing.assert_array_equal(run([content]), wanted.images[:1])
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match=NO_IMAGE):
                run([content])
    assert (wanted.images == wanted.images[0]).all()


def test_changed_exif_headers():
    """Headers of several segments, with every cut, and with changes in any of their bytes."""
    rng, contents = random.Random(0), []
    for turned in range(1, 9):
        for order in '<>':
            photo = photograph(turned, order)
            start = photo.index(b'\xff\xe1')
            before = b'\xff\xfe\0\x0aExif\0\0ab\xff\xe1\0\x08Exif\0a'
            whole = photo[:start] + before + photo[start : start + 80]
            contents += (
                [whole]
                + [whole[:i] for i in range(2, len(whole))]
                + [_changed(whole, rng, len(whole)) for _ in range(50)]
            )
            contents += [
                photo[:start] + end + b'\0\2' + photo[start:]
                for end in (b'\xff\xd9', b'\xff\xda', b'\xff\xdb')
            ]
    found = tf.map_fn(encoded._orientation, tf.constant(contents), tf.int64)
    with tf.Session() as session:
        found = session.run(found)
    wanted = np.array([exif.orientation(content) for content in contents])
    assert set(wanted) == set(range(1, 9)) and (wanted > 1).sum() > 500
    np.testing.assert_array_equal(np.where(np.isin(found, list(exif.TURNS)), found, 1), wanted)


def test_a_damaged_exif_header_turns_nothing(run):
    photo = photograph(6)
    start = photo.index(b'Exif')
    damaged = photo[: start + 6] + b'IM' + photo[start + 8 :]
    upright, same, turned = run([photograph(1), damaged, photo])
    np.testing.assert_array_equal(same, upright)
    assert not np.array_equal(turned, upright)


def test_the_graph_needs_no_python(tmp_path):
    """It is written as a SavedModel, and read again."""
    contents = tf.placeholder(tf.string, [None])
    images = encoded.small_images(contents)
    with tf.Session() as session:
        wanted = session.run(images, {contents: [SMALL['jpeg'], TURNED['6>']]})
        tf.saved_model.simple_save(
            session, str(tmp_path / 'model'), {'contents': contents}, {'images': images}
        )
        graph = str(session.graph.as_graph_def())
    # also in the functions of its branches
    assert 'op: "DecodeJpeg"' in graph and not re.findall(r'op: "\w*Py\w*"', graph)
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ['serve'], str(tmp_path / 'model')).signature_def[
            'serving_default'
        ]
        found = session.run(
            signature.outputs['images'].name,
            {signature.inputs['contents'].name: [SMALL['jpeg'], TURNED['6>']]},
        )
    np.testing.assert_array_equal(found, wanted)


def test_a_photograph_at_the_end_of_a_long_header(run):
    """Segments of 64 KiB before the EXIF data."""
    photo = photograph(8, '>')
    segments = (b'\xff\xe2\xff\xff' + bytes(65533)) * 4
    found, wanted = run([photo[:2] + segments + photo[2:], photo])
    np.testing.assert_array_equal(found, wanted)
    assert not np.array_equal(found, run([pictures.encoded(smooth(48, 80), 'JPEG', quality=95)])[0])
