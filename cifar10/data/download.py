"""Downloads the official archives of CIFAR-10 and CIFAR-100, and puts their files into place when
they are complete."""

import os
import shlex
import shutil
import tarfile
from typing import NamedTuple
import zlib

from cifar10 import files
from cifar10.data import dataset, transfer, writing
from cifar10.errors import UserError


class Archive(NamedTuple):
    """An official archive."""

    name: str  # of its file
    source: transfer.Source
    published: dataset.Published
    file_bytes: int  # of its largest file


# The MD5s are published at https://www.cs.toronto.edu/~kriz/cifar.html.
CIFAR10 = Archive(
    'cifar-10-binary.tar.gz',
    transfer.Source(
        'the CIFAR-10 binary archive',
        'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz',
        'c32a1d4ab5d03f1284b67883e8d87530',
    ),
    dataset.CIFAR10,
    10000 * (1 + dataset.IMAGE_BYTES),
)
CIFAR100 = Archive(
    'cifar-100-binary.tar.gz',
    transfer.Source(
        'the CIFAR-100 binary archive',
        'https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz',
        '03b5dce01913d631647c71ecec9e9cb8',
    ),
    dataset.CIFAR100,
    50000 * (2 + dataset.IMAGE_BYTES),
)
DATA_URL, MD5 = CIFAR10.source.url, CIFAR10.source.md5


def maybe_download_and_extract(
    data_dir=dataset.DATA_DIR, data_url=DATA_URL, md5=MD5, timeout_secs=30, retry_secs=1
):
    """Puts CIFAR-10 into cifar-10-batches-bin, unless its files are there already.

    If the parent of that directory holds a copy of the archive, nothing is downloaded.

    Args:
      data_dir: cifar-10-batches-bin, or its parent; or any directory that holds a data set.
      data_url: the URL of the archive.
      md5: hexadecimal MD5 of the archive.
      timeout_secs, retry_secs: see transfer.Source.

    Raises:
      UserError: the archive cannot be downloaded or is not the published one, or the directory
        holds only some of the files.
    """
    command = 'cifar10_dataset.py download --data_dir=%s --data_url=URL' % shlex.quote(
        os.path.abspath(data_dir)
    )
    remedy = 'try `%s` with another address' % command
    source = CIFAR10.source._replace(
        url=data_url, md5=md5, timeout_secs=timeout_secs, retry_secs=retry_secs, remedy=remedy
    )
    prepare(CIFAR10._replace(source=source), data_dir)


def prepare(archive, data_dir):
    """Puts the files of an Archive into their directory, as `maybe_download_and_extract` does."""
    with writing.preparing(data_dir, archive.published) as directory:
        if directory is None:
            return
        path = os.path.join(os.path.dirname(directory), archive.name)
        if not os.path.exists(path):
            transfer.download(archive.source, path)
        else:
            files.check_regular(path, 'delete it to have it downloaded')
            found = transfer.md5(path)
            if found != archive.source.md5:
                raise UserError(
                    '%s is not the published archive (its MD5 is %s, not %s): delete it to have it downloaded'
                    % (path, found, archive.source.md5)
                )
        _extract(archive, path, directory)


def _extract(archive, path, directory):
    """Extracts the files of the data set, and nothing else."""
    print('Extracting %s' % path, flush=True)
    published = archive.published
    longest = dict.fromkeys(published.train_files + published.test_files, archive.file_bytes)
    longest.update(
        {listing: dataset.CLASS_NAMES_BYTES for listing, _, _ in published.labels.values()}
    )
    try:
        with tarfile.open(path, 'r:gz') as tar, writing.new_directory(directory) as new:
            for name, num_bytes in longest.items():
                member = tar.getmember('%s/%s' % (published.directory, name))
                if not member.isreg() or member.size > num_bytes:
                    raise tarfile.TarError(
                        '%s is not a file of at most %d bytes' % (member.name, num_bytes)
                    )
                with open(os.path.join(new, name), 'wb') as extracted:
                    shutil.copyfileobj(tar.extractfile(member), extracted)
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise UserError(
            '%s is not %s (%s): delete it to have it downloaded'
            % (path, archive.source.title, error)
        )
