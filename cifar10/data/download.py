"""Published data sets on disk: from an archive, another program's copy, or a host."""

import glob
import os

from cifar10 import errors
from cifar10.data import dataset, dataset_writer, published, transport
from cifar10.errors import UserError
from cifar10.system import directories, files

DATA_URL = 'https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz'  # as in the books
# Directories of other programs, in which they keep archives or files: torchvision, Keras,
# TensorFlow Datasets (two layouts) and the books.
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

    The default directory must not belong to another user.

    Args:
      data_dir: cifar-10-batches-bin or its parent. Another data set in this directory is kept.
      data_url: URL of the archive. Default: the hosts in cifar10.data.published.
      md5: hexadecimal MD5 of the archive at `data_url`. Default: the published one.

    Raises:
      UserError: see `obtain`; or the default directory belongs to another user.
    """
    if data_dir == dataset.DATA_DIR and not dataset_writer.is_present(data_dir):
        directories.check_trusted(data_dir, 'give another directory')
    source = published.CIFAR10
    if md5:
        source = source._replace(archives=[source.archives[0]._replace(md5=md5)], sha1={})
    obtain(source, data_dir, data_url)


def obtain(source, data_dir, data_url=None):
    """Write the binary files of a Published data set, unless they exist.

    They are made from the first of: an archive or the version for Python beside them, a verified
    copy of another program, a download.

    Args:
      source: the Published data set.
      data_dir: the directory of the files, or its parent.
      data_url: URL of an archive. With it, no other host and no copy of a program is used.

    Raises:
      UserError: no host sends the archive, a copy beside the files is damaged, or some of the files
        are missing.
    """
    with dataset_writer.lock_files_dir(data_dir, source.spec) as directory:
        if directory is None or _use_copy_beside(source, directory):
            return
        parent = os.path.dirname(os.path.abspath(directory))
        copies = [] if data_url else _copies_of_programs(source, parent)
        is_made, damage = _use_first(source, copies, directory, is_published=True)
        if is_made:
            return
        try:
            path = transport.Download(source, parent, [data_url] if data_url else source.urls).run()
        except ConnectionError as error:
            names = ' or '.join(archive.name for archive in source.archives)
            remedies = [f'put {names} into {parent}', 'or train with --dataset=synthetic']
            remedies = ([str(damage)] if damage else []) + remedies
            check = 'check the network' + (', or leave out --data_url' if data_url else '')
            raise UserError(f'Cannot download {error}: {check}; {"; ".join(remedies)}')
        _write(source, path, directory)


def use_copy(source, data_dir):
    """Make the binary files from a copy beside them, unless they exist.

    Args:
      source: the Published data set.
      data_dir: the directory of the files, or its parent.

    Returns:
      False if there are neither files nor a copy.

    Raises:
      UserError: there are only damaged copies, or some of the files are missing.
    """
    with dataset_writer.lock_files_dir(data_dir, source.spec) as directory:
        return directory is None or _use_copy_beside(source, directory)


def _use_copy_beside(source, directory):
    copies = _find_copies(source, os.path.dirname(os.path.abspath(directory)))
    is_made, damage = _use_first(source, copies, directory, is_published=False)
    if damage and not is_made:
        raise damage
    return is_made


def _use_first(source, copies, directory, is_published):
    """Make the files from the first usable copy.

    Returns:
      True if there is one, and the UserError of the first damaged copy or None.
    """
    damage = None
    for path in copies:
        try:
            _write(source, path, directory, is_published)
            return True, damage
        except UserError as error:
            damage = damage or error
            if is_published:
                errors.warn(error)
    return False, damage


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


def _copies_of_programs(source, parent):
    """Return the paths of readable copies of other programs, outside `parent`."""
    copies = []
    for pattern in _USUAL_PLACES:
        for place in glob.glob(os.path.abspath(os.path.expanduser(pattern))):
            if os.path.realpath(place) == os.path.realpath(parent):
                continue
            copies += _find_copies(source, place)
            binary_files = os.path.join(place, source.spec.directory)
            copies += [binary_files] if published.holds_files(source, binary_files) else []
            for archive in source.archives:  # TensorFlow Datasets adds the host and a checksum.
                stem = archive.name[: -len('.tar.gz')]
                copies += glob.glob(os.path.join(glob.escape(place), f'*{stem}*.tar.gz'))
    return [path for path in dict.fromkeys(copies) if os.access(path, os.R_OK)]


def _write(source, path, directory, is_published=False):
    """Write the binary files of a copy to a new directory.

    Args:
      source: the Published data set.
      path: an archive, or a directory with the files of one version.
      directory: the new directory.
      is_published: True to reject files with other checksums than the published ones; False to warn
        of them.

    Raises:
      UserError: the copy is incomplete or damaged, or the directory cannot be written.
    """
    print(f'Making {directory} from {path}', flush=True)
    with dataset_writer.verified_directory(directory) as new:
        _write_files(source, path, new, is_published)


def _write_files(source, path, directory, is_published=False):
    published.write_files(source, path, directory)
    name = published.differing_file(source, directory)
    if name:
        message = f'{path} is not the published {source.name}: the checksum of {name} differs'
        if is_published:
            raise UserError(message + '; delete it or replace it by a good copy')
        errors.warn(message)


def find_published(path):
    """Return the Published data set of an archive, or of a directory with its files, or None."""
    md5 = files.digest(path, 'md5') if os.path.isfile(path) else None
    for source in (published.CIFAR10, published.CIFAR100):
        is_archive = any(archive.md5 == md5 for archive in source.archives)
        if is_archive or published.holds_files(source, path):
            return source
    return None


def convert(source, path, out):
    """Write the binary files of a copy of a Published data set to the new directory `out`.

    Raises:
      UserError: the copy is damaged, or `out` exists or cannot be written.
    """
    with dataset_writer.new_dataset(out) as directory:
        _write_files(source, path, directory)
