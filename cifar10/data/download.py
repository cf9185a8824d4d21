"""Published data sets on disk: from an archive, another program's copy, or a host."""

import glob
import os

from cifar10 import errors
from cifar10.data import dataset, dataset_writer, published, transport
from cifar10.errors import UserError

DATA_URL = 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz'  # as in the books
# Directories of torchvision, Keras, TensorFlow Datasets (two layouts) and the books.
_USUAL_PLACES = (
    'data',
    '~/.keras/datasets',
    '~/tensorflow_datasets/downloads',
    '~/tensorflow_datasets/downloads/*',
    dataset.DATA_DIR,
    dataset.CIFAR100_DATA_DIR,
)


def maybe_download_and_extract(data_dir=dataset.DATA_DIR, data_url=None, md5=None):
    """Write CIFAR-10 to cifar-10-batches-bin, unless the files exist; see `obtain`.

    Args:
      data_dir: cifar-10-batches-bin or its parent. Another data set in this directory is kept.
      data_url: URL of the archive. Default: the hosts in cifar10.data.published.
      md5: hexadecimal MD5 of the archive at `data_url`. Default: the published one.

    Raises:
      UserError: see `obtain`.
    """
    source = published.CIFAR10
    if md5:
        archive = published.archive_of_url(source, data_url or DATA_URL)
        source = source._replace(archives=[archive._replace(md5=md5.lower())], sha1={})
    obtain(source, data_dir, data_url)


def obtain(source, data_dir, data_url=None, alternative='the synthetic data set'):
    """Write the binary files of a Published data set, unless they exist.

    They are made from the first of: an archive or the version for Python beside them, a verified
    copy of another program, a download.

    Args:
      source: the Published data set.
      data_dir: the directory of the files, or its parent.
      data_url: URL of an archive. With it, no other host and no copy of a program is used.
      alternative: another data set, for the message about a failed download.

    Raises:
      UserError: no host sends the archive, a copy beside the files is damaged, or some of the files
        are missing.
    """
    with dataset_writer.lock_files_dir(data_dir, source.spec) as directory:
        if directory is None or _use_copy_beside(source, directory):
            return
        copies = [] if data_url else _copies_of_programs(source)
        is_made, damage = _use_first(source, copies, directory, is_published=True)
        if is_made:
            return
        parent = _parent(directory)
        try:
            transport.Download(source, parent, [data_url] if data_url else source.urls).run()
        except ConnectionError as error:
            names = ' or '.join(archive.name for archive in source.archives)
            remedies = ['check the network' + (', or leave out {data_url}' if data_url else '')]
            remedies += [f'replace the copy that was found: {damage}'] if damage else []
            remedies += [f'put {names} into {parent}', f'or use {alternative}']
            raise UserError(f'Cannot download {error}', '; '.join(remedies), 'data_url')
        _use_copy_beside(source, directory)


def use_copy(source, data_dir):
    """Make the binary files from a copy beside them, unless they exist.

    Args:
      source: the Published data set.
      data_dir: the directory of the files, or its parent.

    Returns:
      False if there is no copy.

    Raises:
      UserError: there are only damaged copies, or some of the files are missing.
    """
    if not _find_copies(source, _parent(dataset.files_dir(data_dir, source.spec))):
        return False
    with dataset_writer.lock_files_dir(data_dir, source.spec) as directory:
        return directory is None or _use_copy_beside(source, directory)


def _parent(directory):
    return os.path.dirname(os.path.abspath(directory))


def _use_copy_beside(source, directory):
    copies = _find_copies(source, _parent(directory))
    if copies and not os.access(_parent(directory), os.W_OK):
        raise UserError(
            f'The binary files of {copies[0]} cannot be written to {_parent(directory)}',
            f'write them elsewhere with `cifar10_dataset.py convert {copies[0]} OUT`, and give OUT as the directory',
        )
    is_made, damage = _use_first(source, copies, directory)
    if damage and not is_made:
        raise UserError(str(damage), 'delete it or replace it by a good copy')
    return is_made


def _use_first(source, copies, directory, is_published=False):
    """Make the files from the first usable copy.

    Args:
      source: the Published data set.
      copies: paths of archives, or of directories with the files of one version.
      directory: the new directory.
      is_published: True to reject other files than the published ones; False to warn of them.

    Returns:
      True if a copy is usable, and the DamagedError of the first damaged one or None.

    Raises:
      UserError: the directory cannot be written.
    """
    damage = None
    for path in copies:
        print(f'Making {directory} from {path}', flush=True)
        try:
            with dataset_writer.verified_directory(directory) as new:
                _write_files(source, path, new, is_published)
            return True, damage
        except published.DamagedError as error:
            damage = damage or error
            if is_published:
                errors.warn(f'{error}; it is not used')
    return False, damage


def _write_files(source, path, directory, is_published=False):
    published.write_files(source, path, directory)
    difference = published.difference(source, directory)
    if difference:
        message = f'{path} is not the published {source.name}: {difference}'
        if is_published:
            raise published.DamagedError(message)
        errors.warn(message)


def _find_copies(source, place):
    """Return the directories with the version for Python, and the archives, in a directory."""
    # Keras adds -target, or for an archive .tar.gz or -target_archive.
    found = sorted(glob.glob(os.path.join(glob.escape(place), source.spec.python_directory + '*')))
    paths = []
    for path in [place] + found:
        both = path, os.path.join(path, source.spec.python_directory)
        paths += [directory for directory in both if published.holds_files(source, directory)]
    paths += [os.path.join(place, archive.name) for archive in source.archives]
    paths += [path for path in found if path.endswith(('.tar.gz', '_archive'))]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def _copies_of_programs(source):
    """Return the paths of copies of other programs."""
    copies = []
    for name in _USUAL_PLACES:
        path = os.path.expanduser(name)
        places = glob.glob(glob.escape(path[:-1]) + '*') if path.endswith('*') else [path]
        for place in places:
            copies += _find_copies(source, place)
            binary_files = os.path.join(place, source.spec.directory)
            copies += [binary_files] if published.holds_files(source, binary_files) else []
            for archive in source.archives:  # TensorFlow Datasets adds the host and a checksum.
                stem = archive.name[: -len('.tar.gz')]
                copies += glob.glob(os.path.join(glob.escape(place), f'*{stem}*.tar.gz'))
    return list(dict.fromkeys(copies))


def convert(source, path, out):
    """Write the binary files of a copy of a Published data set to the new directory `out`.

    Raises:
      UserError: the copy is damaged, or `out` exists or cannot be written.
    """
    try:
        with dataset_writer.new_dataset(out) as directory:
            _write_files(source, path, directory)
    except published.DamagedError as error:
        raise UserError(str(error), 'replace it by a good copy')
