"""Copies of a published data set: archives, and directories with the files of one version."""

import contextlib
import glob
import os
import shutil
import tarfile
import zlib

from cifar10 import errors
from cifar10.data import catalog, dataset, python_version, verification
from cifar10.errors import UserError
from cifar10.system import files

# of torchvision, Keras and the trainers here
_PLACES = ['data', '~/.keras/datasets', *(dataset.DATA_DIRS[name] for name in catalog.PUBLISHED)]
_REMEDY = 'delete it or replace it by a good copy'
_DAMAGE = (
    FileNotFoundError,
    PermissionError,
    tarfile.TarError,
    KeyError,
    EOFError,
    zlib.error,
    python_version.Error,
)


class DamagedError(UserError):
    """Incomplete, damaged or changed copy."""


def find(published, place):
    """Return the paths of the copies in a directory."""
    names = ['', published.directory, *(archive.name for archive in published.archives)]
    name = published.python.directory
    # Keras 2 adds .tar.gz to an archive. Keras 3 adds -target or -target_archive.
    names += [name, f'{name}-target/{name}', f'{name}.tar.gz', f'{name}-target_archive']
    paths = [os.path.join(place, name) for name in dict.fromkeys(names)]
    return [path for path in paths if os.path.isfile(path) or _holds_files(published, path)]


def find_of_programs(published):
    """Return the paths of the copies of other programs."""
    paths = [path for place in _PLACES for path in find(published, os.path.expanduser(place))]
    downloads = glob.escape(os.path.expanduser('~/tensorflow_datasets/downloads'))
    for archive in published.archives:
        # TensorFlow Datasets adds the host and a checksum. It has had two layouts.
        name = f'*{archive.name[: -len(".tar.gz")]}*.tar.gz'
        paths += glob.glob(f'{downloads}/{name}') + glob.glob(f'{downloads}/*/{name}')
    return paths


def _holds_files(published, directory):
    """Return True if a directory holds files of either version, and is no data set of a user."""
    first = published.train_files[0]
    names = [first, python_version.pickle_name(first), published.python.meta_file]
    is_file = [os.path.isfile(os.path.join(directory, name)) for name in names]
    return any(is_file) and not dataset.has_info(directory)


def identify(path):
    """Return the Published data set of an archive, or of a directory with its files, or None.

    Return also the path of the archive, or of the directory, which can be in `path`.
    """
    md5 = files.digest(path, 'md5') if os.path.isfile(path) else None
    for published in catalog.PUBLISHED.values():
        if any(archive.md5 == md5 for archive in published.archives):
            return published, path
        for name in ('', published.directory, published.python.directory):
            place = os.path.join(path, name) if name else path
            if _holds_files(published, place):
                return published, place
    return None, path


def write_binary_files(published, copy, directory, is_strict=False):
    """Write the binary files of a copy to an empty directory.

    Args:
      published: a Published data set.
      copy: path of an archive, or of a directory with the files of one version.
      directory: the empty directory.
      is_strict: True to reject other files than the published ones; False to warn of them.

    Raises:
      DamagedError: the archive has another MD5, or the copy is incomplete or damaged.
    """
    try:
        with _open_copy(published, copy) as (open_file, is_python):
            if is_python:
                python_version.write_binary_files(published, open_file, directory)
            else:
                for name in [*published.binary_files, *published.names_files]:
                    with open_file(name) as file, open(os.path.join(directory, name), 'wb') as out:
                        shutil.copyfileobj(file, out)
        verification.verify(dataset.read(directory))
    except _DAMAGE as error:
        raise DamagedError(f'{copy} is damaged ({error}): {_REMEDY}')
    except UserError as error:
        # The directory will be removed, so the message names the copy instead.
        raise DamagedError(str(error).replace(directory, copy))
    for name, sha1 in published.sha1.items():
        if files.digest(os.path.join(directory, name), 'sha1') != sha1:
            changed = (
                f'{copy} is not the published {published.name}: the checksum of {name} differs'
            )
            if is_strict:
                raise DamagedError(f'{changed}: {_REMEDY}')
            errors.warn(changed)
            break


@contextlib.contextmanager
def _open_copy(published, copy):
    """Yield a function that opens a file of a copy by its name, and True for the Python version."""
    if os.path.isdir(copy):
        names = published.train_files
        is_python = not os.path.exists(os.path.join(copy, names[0]))
        names = list(map(python_version.pickle_name, names)) if is_python else names
        dataset.check_no_further_file(copy, names)
        yield lambda name: open(os.path.join(copy, name), 'rb'), is_python  # noqa: SIM115
        return
    md5 = files.digest(copy, 'md5')
    directories = {archive.md5: archive.directory for archive in published.archives}
    if md5 not in directories:
        expected = ' or '.join(directories)
        raise DamagedError(
            f'{copy} is not the published archive (its MD5 is {md5}, not {expected}): {_REMEDY}'
        )
    directory = directories[md5]
    with tarfile.open(copy, 'r:gz') as tar:
        yield lambda name: tar.extractfile(f'{directory}/{name}'), directory != published.directory
