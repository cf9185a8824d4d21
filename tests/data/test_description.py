"""The file dataset.json."""

import json
import os

import pytest

from cifar10.data import description
from cifar10.data.description import Description
from cifar10.errors import UserError
from tests.helpers import special_files
from tests.helpers.special_files import deadline  # noqa: F401

ABOUT = {'examples': 5, 'sha256': '0' * 64}
WHOLE = Description(
    ['a', 'b c', '\u732b'], 1, {'data_batch_1.bin': ABOUT}, {'test_batch.bin': ABOUT}, 'nowhere'
)


def _write(directory, **changes):
    content = dict(WHOLE._asdict(), **changes)
    (directory / description.NAME).write_text(
        json.dumps({name: value for name, value in content.items() if value is not None})
    )


def test_what_is_written_is_read(tmp_path):
    description.write(str(tmp_path), WHOLE)
    assert description.read(str(tmp_path)) == WHOLE
    assert description.read(str(tmp_path / 'nothing')) is None


@pytest.mark.parametrize('num_classes, num_bytes', [(2, 1), (256, 1), (257, 2), (65536, 2)])
def test_the_bytes_of_a_label(num_classes, num_bytes):
    assert description.label_bytes(num_classes) == num_bytes


@pytest.mark.parametrize(
    'changes, fault',
    [
        ({'classes': None}, 'it is not a JSON object of classes, label_bytes, train, test, origin'),
        ({'more': 1}, 'it is not a JSON object'),
        ({'classes': 'ab'}, 'the classes are no list of names'),
        ({'classes': ['a', 1]}, 'the classes are no list of names'),
        ({'classes': ['a']}, 'it has 1 classes, not 2 to 65536'),
        ({'classes': list(map(str, range(65537)))}, 'it has 65537 classes'),
        ({'classes': ['a', 'a']}, 'two classes have the same name'),
        ({'classes': ['a', ' ']}, "a class cannot be called ' '"),
        ({'classes': ['a', '\x1b[31m']}, r"a class cannot be called '\\x1b\[31m'"),
        ({'label_bytes': 3}, 'label_bytes is 3 for 3 classes'),
        ({'label_bytes': '1'}, "label_bytes is '1'"),
        ({'label_bytes': True}, 'label_bytes is True'),
        ({'label_bytes': 1.0}, 'label_bytes is 1.0'),
        (
            {'label_bytes': 1, 'classes': list(map(str, range(257)))},
            'label_bytes is 1 for 257 classes',
        ),
        ({'train': {}}, 'it names no files for training'),
        ({'test': ['test_batch.bin']}, 'or none for the test'),
        ({'train': {'../x': ABOUT}}, r"'\.\./x' is not the name of a file"),
        ({'train': {'/etc/passwd': ABOUT}}, 'is not the name of a file'),
        ({'train': {'..': ABOUT}}, 'is not the name of a file'),
        ({'train': {'': ABOUT}}, 'is not the name of a file'),
        ({'train': {'a\nb': ABOUT}}, r"'a\\nb' is not the name of a file"),
        ({'train': {'a': 5}}, 'a has no number of examples, or no SHA-256'),
        ({'train': {'a': dict(ABOUT, examples=0)}}, 'a has no number'),
        ({'train': {'a': dict(ABOUT, examples=True)}}, 'a has no number'),
        ({'train': {'a': dict(ABOUT, examples=5.0)}}, 'a has no number'),
        ({'train': {'a': dict(ABOUT, sha256='0' * 63)}}, 'or no SHA-256'),
        ({'train': {'a': dict(ABOUT, sha256='X' * 64)}}, 'or no SHA-256'),
        ({'train': {'a': dict(ABOUT, sha256='0' * 64 + '\n')}}, 'or no SHA-256'),
        ({'origin': 7}, 'the origin is no text'),
        ({'test': WHOLE.train}, 'data_batch_1.bin is for training and for the test'),
    ],
)
def test_a_damaged_description(tmp_path, changes, fault):
    _write(tmp_path, **changes)
    with pytest.raises(
        UserError,
        match='^%s is damaged \\(.*%s.*\\): put the original back, or make the data set again$'
        % (tmp_path / 'dataset.json', fault),
    ):
        description.read(str(tmp_path))


@pytest.mark.parametrize(
    'content', [b'', b'{', b'[]', b'\xff\xfe', b'null', b'[' * 100000, b'{"a": NaN}', b'7' * 10000]
)
def test_what_is_no_description(tmp_path, content):
    (tmp_path / description.NAME).write_bytes(content)
    with pytest.raises(UserError, match=r'^%s is damaged \(' % (tmp_path / 'dataset.json')):
        description.read(str(tmp_path))


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_a_description_that_is_no_file(tmp_path, kind):
    special_files.make(tmp_path / description.NAME, kind)
    with pytest.raises(UserError, match='%s is %s, not a file' % (tmp_path / 'dataset.json', kind)):
        description.read(str(tmp_path))


def test_a_description_of_10_gigabytes(tmp_path):
    """It is not read whole."""
    description.write(str(tmp_path), WHOLE)
    os.truncate(str(tmp_path / description.NAME), 10**10)
    with pytest.raises(UserError, match='is damaged'):
        description.read(str(tmp_path))
