"""Preparation of a published data set: binary files from a copy on this computer, or a download."""

import os

from cifar10 import errors
from cifar10.data import catalog, copies, dataset, dataset_writer
from cifar10.data.copies import DamagedError
from cifar10.data.download import download_archive
from cifar10.errors import UserError, show


def maybe_download_and_extract(data_dir=dataset.DATA_DIR, data_url=None, md5=None, progress=show):
    """Write CIFAR-10 to cifar-10-batches-bin, unless the files exist; see `prepare`.

    Args:
      data_dir: cifar-10-batches-bin or its parent. Another data set in this directory is kept.
      data_url: URL of the archive. With it, no other host and no copy of a program is used.
        Default: the hosts in the catalog.
      md5: hexadecimal MD5 of the archive at `data_url`. Default: the published one.
      progress: a function of one line of text.

    Raises:
      UserError: see `prepare`.
    """
    published = catalog.CIFAR10
    if md5:
        archive = published.archive_of(data_url or '')._replace(md5=md5.lower())
        published = published._replace(archives=[archive], sha1={})
    prepare(published, data_dir, progress, data_url)


def prepare(published, data_dir, progress, data_url=None, alternative='the synthetic data set'):
    """Write the binary files of a Published data set, unless they exist.

    They are made from the first of: an archive or the version for Python beside them, a verified
    copy of another program, a download.

    Args:
      published: the Published data set.
      data_dir: the directory of the files, or its parent.
      progress: a function of one line of text.
      data_url: URL of an archive; see `maybe_download_and_extract`.
      alternative: another data set, for the message about a failed download.

    Raises:
      UserError: no host sends the archive, a copy beside the files is damaged, or some of the files
        are missing.
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
        else:
            for copy in copies.find_of_programs(published):
                try:
                    _write(published, copy, directory, progress, is_strict=True)
                    return
                except DamagedError as error:
                    errors.warn(f'Not used: {error}')
        parent = _parent(directory)
        try:
            path = download_archive(archives, parent, progress)
        except ConnectionError as error:
            names = ' or '.join(archive.name for archive in archives)
            raise UserError(
                f'Cannot download {published.name} from {error}: check the network'
                f'{", or leave out --data_url" if data_url else ""}; put {names} into {parent}; or use {alternative}'
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
    """Make the files from the first good copy beside them; return False without a copy."""
    parent, damage = _parent(directory), None
    for copy in copies.find(published, parent):
        if not os.access(parent, os.W_OK):
            raise UserError(
                f'The binary files of {copy} cannot be written to {parent}: '
                f'write them elsewhere with `cifar10_dataset.py convert {copy} OUT`, and give OUT as the directory'
            )
        try:
            _write(published, copy, directory, progress)
            return True
        except DamagedError as error:
            damage = damage or error
    if damage:
        raise damage
    return False


def _write(published, copy, directory, progress, is_strict=False):
    progress(f'Making {directory} from {copy}')
    with dataset_writer.verified_directory(directory) as new:
        copies.write_binary_files(published, copy, new, is_strict)


def convert(published, copy, out, progress):
    """Write the binary files of a copy of a Published data set to the new directory `out`.

    Raises:
      UserError: the copy is damaged, or `out` exists or cannot be written.
    """
    with dataset_writer.new_dataset(out, progress) as directory:
        copies.write_binary_files(published, copy, directory)
