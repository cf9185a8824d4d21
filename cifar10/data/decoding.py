"""Image files to images of 32 x 32, by TensorFlow, on all cores."""

import collections
import concurrent.futures
import os
import sys
import threading
from typing import NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10 import errors, files
from cifar10.data import dataset, exif, image_formats
from cifar10.errors import UserError

_CHUNK_FILES = 256  # that one session run decodes
_CHUNK_BYTES = 1 << 24  # or fewer files of so many bytes
_PARALLEL = 4  # images of a chunk
# after which Python's threads change turns: usually 5 ms, in which a chunk could be decoded
_SWITCH_SECONDS = 5e-4
_SHAPE = (dataset.DEPTH, dataset.HEIGHT, dataset.WIDTH)
_FIRST_BYTES, MAX_BYTES = 1 << 16, 1 << 28  # of a file, that are read first, and at most


class Decoded(NamedTuple):
    """The images of some consecutive files."""

    images: np.ndarray  # uint8 [n, 3, 32, 32]
    places: Sequence[int]  # of their files
    failures: Sequence[Tuple[str, str]]  # the paths of the other files, and what is wrong with them


class Decoder:
    """Decodes files of JPEG, PNG, GIF (the first picture) and BMP, whatever their names end in.

    The centre of an image, the largest square, is scaled to 32 x 32 by a triangle filter, which is
    wider than a pixel where the image shrinks; a JPEG file is turned as its EXIF orientation says.
    What is transparent becomes white, in GIF black.
    """

    def __init__(self, num_threads):
        """Decodes with so many threads."""
        self._threads, self._pool = num_threads, concurrent.futures.ThreadPoolExecutor(num_threads)
        config = tf.ConfigProto(
            device_count={'GPU': 0},
            intra_op_parallelism_threads=1,
            inter_op_parallelism_threads=num_threads,
        )
        config.graph_options.rewrite_options.disable_meta_optimizer = True  # it finds nothing here
        self._session = tf.Session(graph=tf.Graph(), config=config)
        self._lock, self._functions = threading.Lock(), {}

    def __enter__(self):
        self._usual_interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        return self

    def __exit__(self, *unused_error):
        sys.setswitchinterval(self._usual_interval)
        self._pool.shutdown()
        self._session.close()

    def decode(self, paths, read_file=None):
        """Yields a Decoded for each chunk of the files, in their order. Close it, if you do not
        take all of them.

        Args:
          paths: of the files.
          read_file: a function from a path to the bytes of the file, which may raise what `read`
            raises; None for `read`.
        """
        waiting = collections.deque()
        try:
            for chunk, failures in _chunks(paths, read_file or read):
                waiting.append(self._pool.submit(self._decode_chunk, chunk, failures))
                if len(waiting) > 2 * self._threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _decode_chunk(self, chunk, failures):
        try:
            images = self._run(chunk)
        except tf.errors.OpError:  # a file is damaged: which one?
            images, whole = [], []
            for read in chunk:
                try:
                    images += list(self._run([read]))
                    whole.append(read)
                except tf.errors.OpError as error:
                    cause = (
                        'the image is damaged or incomplete (%s)'
                        if isinstance(error, tf.errors.InvalidArgumentError)
                        else '%s'
                    )
                    failures.append((read.path, cause % errors.reason(error)))
            chunk = whole
        images = np.array(images, np.uint8).reshape(-1, *_SHAPE)
        for i, read in enumerate(chunk):
            turned = exif.orientation(read.content) if read.kind == 'JPEG' else 1
            if turned != 1:
                images[i] = exif.upright(images[i], turned)
        return Decoded(images, [read.place for read in chunk], failures)

    def _run(self, chunk):
        """The images, uint8 [n, 3, 32, 32], of n files."""
        images, kinds = np.empty((len(chunk),) + _SHAPE, np.uint8), [read.kind for read in chunk]
        for kind in set(kinds):
            places = [i for i, found in enumerate(kinds) if found == kind]
            images[places] = self._function(kind)([chunk[i].content for i in places])
        return images

    def _function(self, kind):
        """The function from the contents of files of this kind to images; its graph is built when
        the first such file comes."""
        with self._lock:
            if kind not in self._functions:
                with self._session.graph.as_default(), tf.device('/cpu:0'):
                    contents = tf.placeholder(tf.string, [None])
                    images = tf.map_fn(
                        lambda content: small_image(image_formats.DECODERS[kind](content)),
                        contents,
                        tf.uint8,
                        parallel_iterations=_PARALLEL,
                    )
                self._functions[kind] = self._session.make_callable(images, [contents])
            return self._functions[kind]


class _Read(NamedTuple):
    place: int  # in the list of paths
    path: str
    content: bytes
    kind: str  # one of the keys of image_formats.DECODERS


def _chunks(paths, read_file):
    """Yields a list of _Read for so many consecutive files, or so many bytes, and the failures
    among these files.

    Only one thread reads: several would wait for each other, because Python lets one of them run at
    a time.
    """
    chunk, failures, num_bytes = [], [], 0
    for place, path in enumerate(paths):
        try:
            content = read_file(path)
            chunk.append(_Read(place, path, content, image_formats.kind(content)))
            num_bytes += len(content)
        except (UserError, OSError) as error:
            failures.append((path, getattr(error, 'strerror', None) or str(error)))
        if (
            len(chunk) + len(failures) == _CHUNK_FILES
            or num_bytes >= _CHUNK_BYTES
            or place == len(paths) - 1
        ):
            yield chunk, failures
            chunk, failures, num_bytes = [], [], 0


def read(path):
    """The bytes of an image file; raises UserError if it cannot be one, OSError if it cannot be
    read."""
    # it may be a FIFO
    handle = os.open(path, os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_BINARY', 0))
    try:
        found = os.fstat(handle)
        special = files.special_kind(found.st_mode)
        if special:
            raise UserError('it is %s' % special)
        start = os.read(handle, _FIRST_BYTES)
        if start.startswith(image_formats.STARTS) and len(start) < _FIRST_BYTES:
            return start
        image_formats.check_start(start)
        if found.st_size > MAX_BYTES:
            raise UserError('it is larger than %d MB' % (MAX_BYTES >> 20))
        return start + os.read(handle, found.st_size)
    finally:
        os.close(handle)


def small_image(image):
    """The centre of an image, the largest square: uint8 [height, width, 3] to uint8 [3, 32, 32]."""
    return small_images(image[None])[0]


def small_images(images):
    """The centres of images, their largest squares: uint8 [n, height, width, 3] to uint8 [n, 3, 32,
    32]."""
    images.set_shape([None, None, None, dataset.DEPTH])
    height_and_width = tf.shape(images)[1:3]
    is_small = tf.reduce_all(tf.equal(height_and_width, [dataset.HEIGHT, dataset.WIDTH]))
    small = tf.cond(
        is_small,
        lambda: images,
        lambda: _scaled_centres(images, tf.cast(height_and_width, tf.float32)),
    )
    small.set_shape([None, dataset.HEIGHT, dataset.WIDTH, dataset.DEPTH])
    return tf.transpose(small, [0, 3, 1, 2])


def _scaled_centres(images, height_and_width):
    """The centres of images, scaled so that their short side becomes 32 pixels."""
    scale = dataset.HEIGHT / tf.reduce_min(height_and_width)
    scaled = tf.raw_ops.ScaleAndTranslate(
        images=images,
        size=[dataset.HEIGHT, dataset.WIDTH],
        scale=tf.stack([scale, scale]),
        translation=(dataset.HEIGHT - height_and_width * scale) / 2,
        kernel_type='triangle',
        antialias=True,
    )
    return tf.cast(tf.round(tf.clip_by_value(scaled, 0, 255)), tf.uint8)
