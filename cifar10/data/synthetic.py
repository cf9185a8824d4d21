"""Synthetic, learnable data set in the layout of CIFAR-10, without a download.

Five classes are shapes at random positions, five are textures. Color, scale and noise are random.
The distortions of training (flip, 24 x 24 crop, contrast) do not change the class.
"""

import os

import numpy as np

from cifar10.config import DEPTH, HEIGHT, NUM_CLASSES, WIDTH
from cifar10.data import dataset, dataset_writer
from cifar10.errors import UserError, show

# Each function is True inside the pattern. u and v are relative to its center and radius.
_PATTERNS = [
    ('disc', lambda u, v: u * u + v * v < 1),
    ('ring', lambda u, v: np.abs(u * u + v * v - 0.75) < 0.35),
    ('square', lambda u, v: np.maximum(np.abs(u), np.abs(v)) < 0.8),
    ('triangle', lambda u, v: (np.abs(u) < (v + 1) / 1.8) & (v < 0.8)),
    (
        'cross',
        lambda u, v: (
            (np.minimum(np.abs(u), np.abs(v)) < 0.3) & (np.maximum(np.abs(u), np.abs(v)) < 1)
        ),
    ),
    ('horizontal_stripes', lambda u, v: np.sin(8 * v) > 0),
    ('vertical_stripes', lambda u, v: np.sin(8 * u) > 0),
    ('diagonal_stripes', lambda u, v: np.sin(5.7 * (u + v)) > 0),
    ('checkerboard', lambda u, v: np.sin(6 * u) * np.sin(6 * v) > 0),
    ('dots', lambda u, v: np.sin(6 * u) * np.sin(6 * v) > 0.4),
]
CLASS_NAMES = [name for name, _ in _PATTERNS]


def draw(label, count, rng):
    """Draw images of a class, uint8 [count, 3, 32, 32]."""

    def uniform(low, high):
        return rng.uniform(low, high, [count, 1, 1]).astype(np.float32)

    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    radius = uniform(7, 11)
    mask = _PATTERNS[label][1]((x - uniform(11, 20)) / radius, (y - uniform(11, 20)) / radius)[
        :, None
    ]
    background = rng.uniform(40, 215, [count, DEPTH, 1, 1]).astype(np.float32)
    # The noise hides the pattern in part. On clearer images, the loss of the classic recipe jumps,
    # because its learning rate of 0.1 is too high for them.
    offset = (rng.uniform(20, 60, background.shape) * rng.choice([-1, 1], background.shape)).astype(
        np.float32
    )
    offset = np.where(np.abs(background + offset - 127.5) > 127.5, -offset, offset)
    noise = rng.standard_normal([count, DEPTH, HEIGHT, WIDTH], np.float32)
    return np.clip(background + offset * mask + uniform(30, 60)[:, None] * noise, 0, 255).astype(
        np.uint8
    )


def draw_records(count, rng):
    """Draw balanced records, uint8 [count, 3073], in random order."""
    rows = np.empty([count, 1 + dataset.IMAGE_BYTES], np.uint8)
    order = rng.permutation(count)
    for label in range(NUM_CLASSES):
        indices = order[label::NUM_CLASSES]
        rows[indices, 0] = label
        rows[indices, 1:] = draw(label, len(indices), rng).reshape(-1, dataset.IMAGE_BYTES)
    return rows


def maybe_write(
    data_dir=dataset.DATA_DIRS['synthetic'], records_per_file=10000, seed=0, progress=show
):
    """Write the data set to data_dir/cifar-10-batches-bin, unless it exists.

    Args:
      data_dir: cifar-10-batches-bin or its parent.
      records_per_file: examples per file: five training files and the test file.
      seed: seed of the images.
      progress: a function of one line of text.

    Raises:
      UserError: the directory holds another data set.
    """
    with dataset_writer.lock_files_dir(data_dir, progress=progress) as path:
        if path is not None:
            progress(f'Writing the synthetic data set to {path}')
            _write(path, records_per_file, seed)
        elif dataset.read(data_dir).class_names != CLASS_NAMES:
            raise UserError(
                f'{dataset.files_dir(data_dir)} holds a data set that is not synthetic: '
                'give another --data_dir'
            )


def _write(path, records_per_file, seed):
    with dataset_writer.verified_directory(path) as directory:
        for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
            draw_records(records_per_file, np.random.default_rng([seed, index])).tofile(
                os.path.join(directory, name)
            )
        with open(os.path.join(directory, dataset.CLASS_NAMES_FILE), 'w') as names:
            names.write('\n'.join(CLASS_NAMES) + '\n')
