"""Archives, and directories of other programs, instead of a download."""

import os
import shutil

import pytest

import cifar10
from cifar10.data import catalog, copies, dataset, dataset_writer, preparation
from tests.helpers import data_sets, listing, messages, programs, python_files

DIRECTORY, PYTHON_DIRECTORY = catalog.CIFAR10.directory, catalog.CIFAR10.python.directory
PYTHON, BINARY = (archive.name for archive in catalog.CIFAR10.archives)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home directory and an empty working directory; the usual places are searched."""
    monkeypatch.undo()  # no_copies
    places = [place for place in copies._PLACES if not place.startswith('/tmp/')]
    monkeypatch.setattr(copies, '_PLACES', places + [str(tmp_path / 'cifar10_data')])
    monkeypatch.setenv('HOME', str(tmp_path / 'home[1]'))  # no pattern
    (tmp_path / 'cwd').mkdir()
    monkeypatch.chdir(str(tmp_path / 'cwd'))
    return tmp_path / 'home[1]'


def _assert_same(directory, versions):
    for name in os.listdir(str(versions / DIRECTORY)):
        expected = (versions / DIRECTORY / name).read_bytes()
        assert (directory / DIRECTORY / name).read_bytes() == expected


def _snapshot(directory):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob('*')
        if path.is_file()
    }


# Directory, name: as the programs leave them.
PYTHON_PLACES = [
    ('cwd/data', PYTHON_DIRECTORY),  # torchvision
    ('home[1]/.keras/datasets', PYTHON_DIRECTORY),  # Keras 2
    ('home[1]/.keras/datasets', f'{PYTHON_DIRECTORY}-target/{PYTHON_DIRECTORY}'),  # Keras 3
]
ARCHIVE_PLACES = [
    ('cwd/data', PYTHON),
    ('home[1]/.keras/datasets', f'{PYTHON_DIRECTORY}.tar.gz'),
    ('home[1]/.keras/datasets', f'{PYTHON_DIRECTORY}-target_archive'),
    (
        'home[1]/tensorflow_datasets/downloads',
        'cs.toronto.edu_kriz_cifar-10-binaryxKOMUKG8XzocVTfyFVq51o-fJese2Nnd2j2ymlm8od0.tar.gz',
    ),
    (
        'home[1]/tensorflow_datasets/downloads/cifar10',
        'cs.toronto.edu_kriz_cifar-10-binaryxKOM.tar.gz',
    ),
]


@pytest.mark.parametrize('place, name', PYTHON_PLACES + [('cifar10_data', DIRECTORY)])
def test_a_directory_of_another_program(home, small, versions, tmp_path, capsys, place, name):
    path = tmp_path / place / name
    shutil.copytree(str(versions / os.path.basename(name)), str(path))
    before = _snapshot(path)
    preparation.prepare(small, str(tmp_path / 'data'), print)
    _assert_same(tmp_path / 'data', versions)
    shown = os.path.join('data', name) if place == 'cwd/data' else path
    line = f'Making {tmp_path}/data/{DIRECTORY} from {shown}\n'
    assert capsys.readouterr() == (line, '')
    assert _snapshot(path) == before and listing.names(tmp_path / 'data') == [DIRECTORY]


@pytest.mark.parametrize('place, name', ARCHIVE_PLACES)
def test_an_archive_of_another_program(
    home, small, versions, archive, python_archive, tmp_path, place, name
):
    path = tmp_path / place / name
    path.parent.mkdir(parents=True)
    path.write_bytes(archive if 'binary' in name else python_archive)
    before = _snapshot(path.parent)
    preparation.prepare(small, str(tmp_path / 'data'), print)
    _assert_same(tmp_path / 'data', versions)
    assert _snapshot(path.parent) == before


@pytest.mark.parametrize('damage', ['a changed pixel', 'a missing file', 'a wrong archive'])
def test_a_damaged_copy_is_not_used_and_named(home, small, versions, tmp_path, capsys, damage):
    directory = tmp_path / 'cwd' / 'data' / PYTHON_DIRECTORY
    shutil.copytree(str(versions / PYTHON_DIRECTORY), str(directory))
    path = directory / 'data_batch_2'
    if damage == 'a missing file':
        path.unlink()
    elif damage == 'a changed pixel':
        content = path.read_bytes()
        path.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    else:
        shutil.rmtree(str(directory))
        (tmp_path / 'cwd' / 'data' / PYTHON).write_bytes(b'text')
    archives = [archive._replace(urls=['http://127.0.0.1:1/x']) for archive in small.archives]
    with messages.raises(': check the network; put '):
        preparation.prepare(small._replace(archives=archives), str(tmp_path / 'new'), print)
    assert listing.names(tmp_path / 'new') == []
    error = capsys.readouterr().err
    assert ': Not used: data/' in error


@pytest.mark.parametrize(
    'kind, data_dir',
    [
        ('directory', '{}'),
        ('directory', '{}/cifar-10-batches-py/'),
        ('archive', '{}'),
        ('archive', '{}/cifar-10-python.tar.gz'),
    ],
)
def test_the_version_for_python_in_the_data_dir(
    small, versions, python_archive, tmp_path, monkeypatch, kind, data_dir
):
    """Each command accepts it, as it accepts the binary version."""
    monkeypatch.setitem(catalog.PUBLISHED, 'cifar10', small)
    parent = tmp_path / 'mine'
    arg = '--data_dir=' + data_dir.format(parent)
    for args in (
        ['download', arg],
        ['info', arg],
        ['holdout', str(parent), str(tmp_path / 'out'), '--num_examples=9'],
    ):
        shutil.rmtree(str(parent), ignore_errors=True)
        parent.mkdir()
        if kind == 'archive':
            (parent / PYTHON).write_bytes(python_archive)
        else:
            shutil.copytree(str(versions / PYTHON_DIRECTORY), str(parent / PYTHON_DIRECTORY))
        status, stdout, stderr = programs.call('cifar10_dataset', *args)
        assert (status, stderr) == (0, '')
        assert f'Making {parent}/{DIRECTORY} from {parent}/' in stdout
        _assert_same(parent, versions)
    images, labels = cifar10.inputs(True, str(parent))
    assert images.shape[1:] == (24, 24, 3) and labels.dtype == 'int32'


def test_another_data_set_in_this_format(small, versions, tmp_path, capsys):
    """It is used where the user has named it, with a warning."""
    source = small._replace(sha1=catalog.CIFAR10.sha1)
    shutil.copytree(str(versions / PYTHON_DIRECTORY), str(tmp_path / PYTHON_DIRECTORY))
    preparation.prepare(source, str(tmp_path), print)
    _assert_same(tmp_path, versions)
    warning = 'is not the published CIFAR-10: the checksum of data_batch_1.bin differs\n'
    assert capsys.readouterr().err.endswith(f' {tmp_path}/{PYTHON_DIRECTORY} {warning}')


def test_cifar100_is_found_without_its_flag(tmp_path, prepare):
    """As in the binary version, the directory decides."""
    data_sets.write_cifar100(tmp_path / 'made')
    python_files.write(tmp_path / 'made', tmp_path / 'cifar-100-python')
    assert prepare(f'--data_dir={tmp_path / "cifar-100-python"}').num_classes == 100
    for name in ('train.bin', 'test.bin', 'fine_label_names.txt', 'coarse_label_names.txt'):
        made = (tmp_path / 'cifar-100-binary' / name).read_bytes()
        assert made == (tmp_path / 'made' / name).read_bytes()


def test_a_data_set_of_the_user_is_no_copy(home, small, tmp_path, capsys):
    """It has the names of the published files, and a dataset.json."""
    data_sets.write(tmp_path / 'made')
    dataset_writer.hold_out(
        dataset.read(str(tmp_path / 'made')), str(tmp_path / 'cwd' / 'data'), 9, seed=0
    )
    assert copies.find_of_programs(small) == []
    data = str(tmp_path / 'cwd' / 'data')
    assert copies.identify(data) == (None, data)


def test_the_published_md5s():
    """As on https://www.cs.toronto.edu/~kriz/cifar.html."""
    known = catalog.CIFAR10.archives + catalog.CIFAR100.archives
    assert {archive.name: archive.md5 for archive in known} == {
        'cifar-10-binary.tar.gz': 'c32a1d4ab5d03f1284b67883e8d87530',
        'cifar-10-python.tar.gz': 'c58f30108f718f92721af3b95e74349a',
        'cifar-100-binary.tar.gz': '03b5dce01913d631647c71ecec9e9cb8',
        'cifar-100-python.tar.gz': 'eb9058c3a382ffc7106e4002c42a8d85',
    }
