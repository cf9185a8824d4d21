"""A part of the training images held out for the test, to choose hyperparameters without a look at the test images."""
import os

import numpy as np

from cifar10.data import dataset, description, verification, writing
from cifar10.errors import UserError


def hold_out(source, path, num_examples, seed):
    """Makes a data set of the training images of another one: some, drawn by class, are its test images.

    Args:
      source: the DataSet whose training images are divided; their order stays.
      path: of the directory of the new data set; it must not exist yet, or be empty.
      num_examples: the number of test images; each class has the part of them that it has of all images, rounded.
      seed: of the random numbers.

    Raises:
      UserError: there are too few images, a file is malformed, or the data set cannot be written.
    """
    counts = verification.count_labels(source.train)
    quotas = divide(counts, num_examples)
    if (counts == quotas).any():
        lacking = int(np.flatnonzero(counts == quotas)[0])
        raise UserError('%d of %d examples leave no image of class %d for training: give fewer --examples'
                        % (num_examples, counts.sum(), lacking))
    names = list(source.class_names or map(str, range(source.num_classes)))
    label_bytes = description.label_bytes(len(names))
    rng = np.random.RandomState(seed)
    ranks = [rng.permutation(count) for count in counts]  # of the images of a class: those below its quota are held out
    with writing.new_data_set(path) as directory:
        train = writing.Writer(directory, dataset.TRAIN_FILES, int(counts.sum() - num_examples), label_bytes)
        test = writing.Writer(directory, dataset.TEST_FILES, num_examples, label_bytes)
        seen = np.zeros_like(counts)
        for labels, images in verification.examples(source.train):
            is_test = np.empty(len(labels), bool)
            for label in np.unique(labels):
                places = np.flatnonzero(labels == label)
                is_test[places] = ranks[label][seen[label]:seen[label] + len(places)] < quotas[label]
                seen[label] += len(places)
            train.add(labels[~is_test], images[~is_test])
            test.add(labels[is_test], images[is_test])
        writing.describe(directory, names, train.close(), test.close(), 'the training images of %s, held out with --examples=%d '
                         '--seed=%d' % (os.path.abspath(source.directory), num_examples, seed))


def divide(counts, total):
    """Divides `total` in proportion to the counts, int64 [classes]; what rounding leaves goes to the largest remainders.

    Raises:
      UserError: the total is greater than the sum of the counts.
    """
    if total >= counts.sum():
        raise UserError('--examples=%d is not less than the %d training images: give fewer' % (total, counts.sum()))
    shares, remainders = np.divmod(counts * total, counts.sum())
    largest = np.argsort(-remainders, kind='stable')[:total - shares.sum()]
    shares[largest] += 1
    return shares
