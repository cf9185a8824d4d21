"""A part of the training images held out for the test, to choose hyperparameters without a look at
the test images."""

import os

import numpy as np

from cifar10.data import dataset, description, verification, writing
from cifar10.errors import UserError


def hold_out(source, path, num_examples, seed):
    """Makes a data set of the training images of another one: some, drawn by class, are its test
    images.

    Args:
      source: the DataSet whose training images are divided; their order stays.
      path: of the directory of the new data set; it must not exist yet, or be empty.
      num_examples: the number of test images; each class has the part of them that it has of all
        images, rounded, and keeps an image for training.
      seed: of the random numbers.

    Raises:
      UserError: there are too few images, a file is malformed, or the data set cannot be written.
    """
    counts = verification.count_labels(source.train)
    quotas = divide(counts, num_examples)
    names = list(source.class_names or map(str, range(source.num_classes)))
    label_bytes = description.label_bytes(len(names))
    rng = np.random.RandomState(seed)
    # of the images of a class: those below its quota are held out
    ranks = [rng.permutation(count) for count in counts]
    with writing.new_data_set(path) as directory:
        train = writing.Writer(
            directory, dataset.TRAIN_FILES, int(counts.sum() - num_examples), label_bytes
        )
        test = writing.Writer(directory, dataset.TEST_FILES, num_examples, label_bytes)
        seen = np.zeros_like(counts)
        for labels, images in verification.examples(source.train):
            is_test = np.empty(len(labels), bool)
            for label in np.unique(labels):
                places = np.flatnonzero(labels == label)
                is_test[places] = (
                    ranks[label][seen[label] : seen[label] + len(places)] < quotas[label]
                )
                seen[label] += len(places)
            train.add(labels[~is_test], images[~is_test])
            test.add(labels[is_test], images[is_test])
        writing.describe(
            directory,
            names,
            train.close(),
            test.close(),
            'the training images of %s, held out with --examples=%d '
            '--seed=%d' % (os.path.abspath(source.directory), num_examples, seed),
        )


def divide(counts, total):
    """Divides `total` in proportion to the counts, int64 [classes], so that at least one of each
    class is left.

    What rounding leaves goes to the classes with the largest remainders.

    Raises:
      UserError: the total is too great.
    """
    most = np.maximum(counts - 1, 0)
    if total > most.sum():
        raise UserError(
            '--examples=%d leaves a class without an image for training: give at most %d'
            % (total, most.sum())
        )
    quotas, remainders = np.divmod(counts * total, counts.sum())
    quotas = np.minimum(quotas, most)
    while quotas.sum() < total:
        possible = np.flatnonzero(quotas < most)
        chosen = possible[np.argsort(-remainders[possible], kind='stable')][: total - quotas.sum()]
        quotas[chosen] += 1
        remainders[chosen] = -1  # the others come first, if it is not enough
    return quotas
