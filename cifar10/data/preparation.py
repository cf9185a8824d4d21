"""Preparation of a published data set: binary files from a copy on this computer, or a download."""

import os

from cifar10 import errors
from cifar10.data import catalog, copies, dataset, dataset_writer
from cifar10.data.copies import DamagedError
from cifar10.data.download import download_archive
from cifar10.errors import UserError, show


def maybe_download_and_extract(data_dir=dataset.DATA_DIR, data_url=None, progress=show):
    """Write CIFAR-10 to cifar-10-batches-bin, unless the files exist; see `prepare`."""
    prepare(catalog.CIFAR10, data_dir, progress, data_url)


def prepare(published, data_dir, progress, data_url=None):
    """Write the binary files of a Published data set, unless they exist.

    They are made from the first good copy: an archive or the version for Python beside them, a copy
    of another program, or a download.

    Args:
      published: the Published data set.
      data_dir: the directory of the files, or its parent. Another data set in it is kept.
      progress: a function of one line of text.
      data_url: URL of an archive. With it, no other host and no copy of a program is used.

    Raises:
      UserError: no host sends the archive, all copies beside the files are damaged, or some of the
        files are missing.
    """
    with dataset_writer.lock_files_dir(data_dir, published, progress) as directory:
        if directory is None or _use_copy_beside(published, directory, progress):
            return
        archives = published.archives
        if data_url:
            named = published.archive_of(data_url)
            archives = [
                archive._replace(urls=[data_url] if archive == named else [])
                for archive in archives
            ]
        elif _use_copy(published, copies.find_of_programs(published), directory, progress, True):
            return
        parent = _parent(directory)
        try:
            path = download_archive(archives, parent, progress)
        except ConnectionError as error:
            names = ' or '.join(archive.name for archive in archives)
            raise UserError(
                f'Cannot download {published.name} from {error}: check the network'
                f'{", or leave out --data_url" if data_url else ""}; put {names} into {parent}; or give --dataset=synthetic'
            )
        _write(published, path, directory, progress)


def use_copy(data_dir, published, progress):
    """Make the binary files of a data set from a copy beside them, unless they exist.

    Args:
      data_dir: the directory of the files, or its parent.
      published: the Published data set; None means any.
      progress: a function of one line of text.

    Returns:
      False if there are neither files nor a copy.

    Raises:
      UserError: there are only damaged copies, or some of the files are missing.
    """
    if dataset.is_present(data_dir, published):
        return True
    for candidate in [published] if published else catalog.PUBLISHED.values():
        if copies.find(candidate, _parent(dataset.files_dir(data_dir, candidate))):
            with dataset_writer.lock_files_dir(data_dir, candidate, progress) as directory:
                return directory is None or _use_copy_beside(candidate, directory, progress)
    return False


def _parent(directory):
    return os.path.dirname(os.path.abspath(directory))


def _use_copy_beside(published, directory, progress):
    return _use_copy(published, copies.find(published, _parent(directory)), directory, progress)


def _use_copy(published, paths, directory, progress, is_strict=False):
    """Make the files from the first good copy; return False without one.

    With `is_strict`, a damaged copy is named. Else, it is an error if there is no good one.
    """
    damage = None
    for path in paths:
        try:
            _write(published, path, directory, progress, is_strict)
            return True
        except DamagedError as error:
            damage = damage or error
            if is_strict:
                errors.warn(f'Not used: {error}')
    if damage and not is_strict:
        raise damage
    return False


def _write(published, copy, directory, progress, is_strict=False):
    progress(f'Making {directory} from {copy}')
    with dataset_writer.verified_directory(directory) as new:
        copies.write_binary_files(published, copy, new, is_strict)
