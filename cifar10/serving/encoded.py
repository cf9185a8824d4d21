"""Images from the bytes of image files, in the graph itself: for a model that is served without
this package."""

import tensorflow.compat.v1 as tf

from cifar10.data import dataset, decoding, exif, image_formats

_HEAD = 54  # bytes: the header of a BMP file, the longest of those that tell the kind
_NO_IMAGE = 'no JPEG, PNG, GIF or BMP file, or one of a kind that TensorFlow does not decode, like BMP with a palette'
# how the data of such a segment begin, after its marker FF E1 and its length of two bytes
_EXIF = list(b'Exif\0\0')
# bytes of an entry in a directory of TIFF: tag, type, count, value; before them is their number, in
# two bytes
_ENTRY = 12


def small_images(contents):
    """What `decoding.Decoder` makes of files, byte for byte, by TensorFlow's own operations.

    Args:
      contents: the bytes of files of JPEG, PNG, GIF or BMP, string [n].

    Returns:
      uint8 [n, 3, 32, 32]. To compute it raises InvalidArgumentError if a file is of another kind
      or damaged.
    """
    with tf.device('/cpu:0'), tf.name_scope('small_images'):
        return tf.map_fn(lambda file: _image(*file), (contents, _kinds(contents)), tf.uint8)


def _image(content, kind):
    """The image, uint8 [3, 32, 32], of a file whose kind has this place in DECODERS."""
    image = tf.switch_case(
        kind, [lambda name=name: _image_of_kind(content, name) for name in image_formats.DECODERS]
    )
    image.set_shape([dataset.DEPTH, dataset.HEIGHT, dataset.WIDTH])
    return image


def _image_of_kind(content, name):
    if name == 'BMP, 8 bits':
        content = _with_shades_of_grey(content)
    image = decoding.small_image(image_formats.DECODERS[name](content))
    if name != 'JPEG':
        return image
    may_have_exif = tf.strings.regex_full_match(content, r'\C*Exif\x00\x00\C*')  # \C is any byte
    return tf.cond(may_have_exif, lambda: _upright(image, _orientation(content)), lambda: image)


def _kinds(contents):
    """The kind of each file, int32 [n], as its place in DECODERS. Fails unless all have one."""
    # so that all of them are long enough
    heads = tf.strings.substr(contents, 0, _HEAD) + bytes(_HEAD)

    def has(start, part):
        return tf.equal(tf.strings.substr(heads, start, len(part)), part)

    # not compressed
    is_png, is_bmp = has(0, image_formats.PNG), has(0, image_formats.BMP) & has(30, bytes(4))
    has_alpha = has(25, b'\4') | has(25, b'\6') | _is_transparent(tf.where_v2(is_png, contents, ''))
    of_kind = {
        'JPEG': has(0, image_formats.JPEG),
        'PNG': is_png & ~has_alpha,
        'PNG with alpha': is_png & has_alpha,
        'GIF': has(0, image_formats.GIF),
        'BMP, 24 bits': is_bmp & has(28, b'\x18\0'),
        'BMP, 32 bits': is_bmp & has(28, b'\x20\0'),
        'BMP, 8 bits': is_bmp & has(28, b'\x08\0'),
    }
    table = tf.stack([of_kind[name] for name in image_formats.DECODERS])
    known = tf.reduce_any(table, 0)
    others = tf.reshape(tf.where_v2(~known), [-1])
    with tf.control_dependencies(
        [tf.Assert(tf.reduce_all(known), [_NO_IMAGE + '; in the batch at', others], summarize=10)]
    ):
        return tf.argmax(tf.cast(table, tf.int32), 0, output_type=tf.int32)


def _is_transparent(png):
    """Whether each PNG file, string [n], has a chunk tRNS before its image, as `decoding` looks for
    it."""
    before = tf.strings.regex_replace(png, r'IDAT\C*', '', replace_global=False)
    return tf.strings.regex_full_match(before, r'\C*tRNS\C*')


def _with_shades_of_grey(bmp):
    """The same BMP file. Fails unless the colours of its palette are the shades of grey in their
    order."""
    octets = tf.decode_raw(bmp, tf.uint8)
    start, count = 14 + _number(octets[17:13:-1]), _number(octets[49:45:-1])
    palette = octets[
        start : start + 4 * tf.where_v2(tf.equal(count, 0), tf.constant(256, tf.int64), count)
    ]
    shades = tf.range(tf.size(palette) // 4)
    colours = tf.cast(tf.reshape(palette[: 4 * tf.size(shades)], [-1, 4])[:, :3], tf.int32)
    is_grey = tf.reduce_all(tf.equal(colours, shades[:, None])) & tf.equal(tf.size(palette) % 4, 0)
    with tf.control_dependencies([tf.Assert(is_grey, [_NO_IMAGE])]):
        return tf.identity(bmp)


def _number(octets):
    """The number, int64 [...], that k bytes, [..., k], are, the highest first."""
    shifts = 8 * tf.range(tf.shape(octets)[-1])[::-1]
    return tf.reduce_sum(
        tf.bitwise.left_shift(tf.cast(octets, tf.int64), tf.cast(shifts, tf.int64)), -1
    )


def _orientation(jpeg):
    """As exif.orientation: what a JPEG file names, int64; not from 2 to 8, if it is to be seen as
    it is."""
    # zeros after the end: they begin and count nothing
    octets = tf.decode_raw(jpeg + bytes(_ENTRY), tf.uint8)
    size = tf.size(octets) - _ENTRY

    def is_segment(at):
        marker = octets[at + 1]
        return tf.equal(octets[at], 0xFF) & tf.not_equal(marker, 0xDA) & tf.not_equal(marker, 0xD9)

    def is_exif(at):
        return tf.equal(octets[at + 1], 0xE1) & tf.reduce_all(
            tf.equal(octets[at + 4 : at + 10], _EXIF)
        )

    def end(at):
        return tf.minimum(at + 2 + tf.cast(_number(octets[at + 2 : at + 4]), tf.int32), size)

    at = tf.while_loop(
        lambda at: is_segment(at) & ~is_exif(at),
        end,
        [tf.constant(2)],
        parallel_iterations=1,
        back_prop=False,
    )
    # a segment at which the loop ended is EXIF
    return _in_directory(octets[at + 10 : tf.where_v2(is_segment(at), end(at), 0)])


def _in_directory(tiff):
    """The orientation, int64, in the first directory of a TIFF header with its data, uint8 [k]; 1
    if there is none."""
    size = tf.size(tiff, out_type=tf.int64)
    tiff = tf.concat([tiff, tf.zeros([_ENTRY], tf.uint8)], 0)
    little, big = [tf.reduce_all(tf.equal(tiff[:2], list(order))) for order in (b'II', b'MM')]

    def number(octets):
        return _number(tf.where_v2(little, octets[..., ::-1], octets))

    start = tf.minimum(number(tiff[4:8]), size)
    # All but the last two bytes of an entry must be there.
    count = tf.minimum(number(tiff[start : start + 2]), (size - start) // _ENTRY) * tf.cast(
        little | big, tf.int64
    )
    entries = tf.reshape(tiff[start + 2 : start + 2 + count * _ENTRY], [-1, _ENTRY])
    found = tf.boolean_mask(
        number(entries[:, 8:10]), tf.equal(number(entries[:, :2]), exif.ORIENTATION)
    )
    return tf.concat([found, [1]], 0)[0]


def _upright(image, turned):
    """As exif.upright: turns an image, [channels, height, width], of this orientation as it is to
    be seen."""
    turns = tf.constant([exif.TURNS.get(i, (False, False, False)) for i in range(9)])
    swap, reverse_rows, reverse_columns = tf.unstack(turns[tf.where_v2(turned <= 8, turned, 1)])
    image = tf.where_v2(swap, tf.transpose(image, [0, 2, 1]), image)
    image = tf.where_v2(reverse_rows, image[:, ::-1], image)
    return tf.where_v2(reverse_columns, image[:, :, ::-1], image)
