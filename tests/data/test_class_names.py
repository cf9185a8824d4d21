"""The class names of a data set, which its file batches.meta.txt lists."""

import os

import pytest

from cifar10.data import dataset, synthetic
from cifar10.errors import UserError
from tests.helpers import special_files
from tests.helpers.special_files import deadline  # noqa: F401


@pytest.mark.parametrize('content, count', [(b'\xff\xfe garbage', 2), (b'', 0)])
def test_a_wrong_number_of_class_names(own_data_dir, content, count):
    with open(
        os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE), 'wb'
    ) as names:
        names.write(content)
    with pytest.raises(UserError, match='batches.meta.txt lists %d class names, not 10' % count):
        dataset.read(own_data_dir)


def _write_class_names(data_dir, content):
    path = os.path.join(data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE)
    with open(path, 'wb') as names:
        names.write(content)
    return path


def test_a_list_of_class_names_that_is_too_long(own_data_dir):
    """Of 10 GB without a block on the disk: it must not be read whole."""
    path = _write_class_names(own_data_dir, b' '.join([b'x'] * 10))
    assert dataset.read(own_data_dir).class_names == ['x'] * 10
    os.truncate(path, 10**10)
    with pytest.raises(
        UserError,
        match=r'^%s is too long for a list of class names \(more than 4096 bytes\): ' % path,
    ):
        dataset.read(own_data_dir)
    _write_class_names(own_data_dir, b'x' * 4078 + b' y' * 9)
    assert len(dataset.read(own_data_dir).class_names) == 10
    _write_class_names(own_data_dir, b'x' * 4078 + b' y' * 9 + b'\n')
    with pytest.raises(UserError, match='is too long'):
        dataset.read(own_data_dir)


@pytest.mark.parametrize(
    'name', ['\x1b[31mred', 'bell\x07', '\x7f', '\x9b31m', '\0', 'right\u202eleft', '\u2066x']
)
def test_a_class_name_that_would_steer_the_terminal(own_data_dir, name):
    path = _write_class_names(own_data_dir, '\n'.join(['x'] * 9 + [name]).encode())
    with pytest.raises(
        UserError, match='^%s has control characters in the class name ' % path
    ) as raised:
        dataset.read(own_data_dir)
    assert str(raised.value).isprintable()


def test_class_names_in_any_language(own_data_dir):
    _write_class_names(own_data_dir, '\r\n'.join(['\u732b', 'gr\u00fcn'] * 5).encode())
    assert dataset.read(own_data_dir).class_names == ['\u732b', 'gr\u00fcn'] * 5


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_a_list_of_class_names_that_is_no_file(own_data_dir, kind):
    path = os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE)
    os.remove(path)
    special_files.make(path, kind)
    with pytest.raises(
        UserError, match='^%s is %s, not a file: correct it, or delete it$' % (path, kind)
    ):
        dataset.read(own_data_dir)


def test_class_names(own_data_dir):
    assert dataset.read(own_data_dir).class_names == synthetic.CLASS_NAMES
    os.remove(os.path.join(own_data_dir, dataset.DIRECTORY, dataset.CLASS_NAMES_FILE))
    assert dataset.read(own_data_dir).class_names is None
