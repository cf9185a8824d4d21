"""Published data sets, from a download to the Dataset."""

import contextlib
import hashlib
import tarfile

import pytest

import cifar10
from cifar10.data import catalog, dataset, preparation, verification
from tests.helpers import data_sets, download_server, listing, messages, programs

PYTHON, BINARY = (archive.name for archive in catalog.CIFAR10.archives)


def _at(published, *urls):
    """Return a Published record with the first archive at these URLs."""
    first, *others = published.archives
    return published._replace(archives=[first._replace(urls=urls), *others])


def _assert_complete(data_dir, archive_name):
    """Assert that --data_dir has the complete data set, the archive, and nothing else."""
    found = dataset.read(str(data_dir))
    verified = verification.verify(found)
    assert (verified.train.num_examples, verified.test.num_examples) == (200, 40)
    assert found.class_names == dataset.CLASS_NAMES
    assert listing.names(data_dir) == [dataset.CIFAR10_DIRECTORY, archive_name]


def test_a_url(archive, small, tmp_path, capsys):
    server = download_server.Server(archive, ['none'])
    with contextlib.closing(server):
        for _ in range(2):  # The second time, the files exist.
            preparation.prepare(small, str(tmp_path / 'data'), preparation.show, server.url)
    _assert_complete(tmp_path / 'data', BINARY)
    assert server.ranges == [None]
    first, *_, before, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f'Downloading {BINARY} from 127.0.0.1:')
    assert before.startswith('Downloading 100%: ')
    assert (
        last == f'Making {tmp_path}/data/{dataset.CIFAR10_DIRECTORY} from {tmp_path}/data/{BINARY}'
    )


def test_a_url_without_the_name_of_an_archive(small, python_archive, tmp_path):
    (tmp_path / 'file').write_bytes(python_archive)
    url = (tmp_path / 'file').as_uri()
    preparation.prepare(small, str(tmp_path / 'data'), print, url)
    _assert_complete(tmp_path / 'data', PYTHON)


def test_no_host(tmp_path, small):
    url = 'http://127.0.0.1:1/x'
    failed = rf'^Cannot download CIFAR-10 from {url} \(.* refused\)'
    remedy = f'put .*{BINARY} into {tmp_path}/a/b; or give --dataset=synthetic$'
    with messages.raises(f'{failed}: check the network, or leave out --data_url; {remedy}'):
        cifar10.maybe_download_and_extract(str(tmp_path / 'a' / 'b'), url)
    with messages.raises(f'{failed} or 1 other hosts: check the network; {remedy}'):
        preparation.prepare(_at(small, url, url), str(tmp_path / 'a' / 'b'), print)
    assert listing.names(tmp_path / 'a' / 'b') == []


def test_a_new_directory_for_a_trainer_and_for_the_command(
    tmp_path, python_archive, small, prepare, monkeypatch, capsys
):
    """A trainer makes no parents, because they may be mistyped. It names a new directory."""
    (tmp_path / 'copy').write_bytes(python_archive)
    published = _at(small, (tmp_path / 'copy').as_uri())
    monkeypatch.setitem(catalog.PUBLISHED, 'cifar10', published)

    with messages.raises(f'^{tmp_path}/new does not exist: make it, or '):
        prepare(f'--data_dir={tmp_path}/new/data')
    assert listing.names(tmp_path) == ['copy'] and capsys.readouterr().out == ''
    prepare(f'--data_dir={tmp_path}/new')
    _assert_complete(tmp_path / 'new', PYTHON)
    line = f'Creating the directory {tmp_path}/new for the data set'
    assert capsys.readouterr().out.splitlines()[0] == line
    prepare(f'--data_dir={tmp_path}/new/{dataset.CIFAR10_DIRECTORY}')
    assert capsys.readouterr().out == ''
    data_dir = tmp_path / 'a' / 'b'
    status, _, stderr = programs.call('cifar10_dataset', 'download', f'--data_dir={data_dir}')
    assert (status, stderr) == (0, '')
    _assert_complete(data_dir, PYTHON)


def test_an_archive_beside_the_files_is_used_or_named_and_kept(tmp_path, small, archive):
    path = tmp_path / BINARY
    path.write_bytes(b'text')
    with messages.raises(f'^{path} is not the published archive .*: delete it or replace it by a '):
        preparation.prepare(small, str(tmp_path), print)
    assert listing.names(tmp_path) == [path.name]
    path.write_bytes(archive)
    preparation.prepare(small, str(tmp_path), print)
    _assert_complete(tmp_path, BINARY)


@pytest.mark.parametrize('fault', ['a file is missing', 'it is cut', 'it is no archive'])
def test_an_archive_that_cannot_be_extracted(tmp_path, small, archive, fault):
    path = tmp_path / BINARY
    path.write_bytes(archive[: len(archive) // 2] if fault == 'it is cut' else b'text')
    if fault == 'a file is missing':
        with tarfile.open(str(path), 'w:gz'):
            pass
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    small = small._replace(archives=[small.archives[1]._replace(md5=md5)])
    with messages.raises(rf'^{path} is damaged \('):
        preparation.use_copy(str(tmp_path), small, print)
    assert listing.names(tmp_path) == [path.name]
    copy = tmp_path / 'new' / BINARY  # the same after a download
    with messages.raises(rf'^{copy} is damaged \('):
        preparation.prepare(small, str(copy.parent), print, path.as_uri())
    assert listing.names(copy.parent) == [copy.name]


def test_cifar100(tmp_path, monkeypatch):
    data_sets.write_cifar100(tmp_path / 'made')
    with tarfile.open(str(tmp_path / 'copy'), 'w:gz') as tar:
        tar.add(str(tmp_path / 'made'), 'cifar-100-binary')
    out = tmp_path / 'out'
    args = ['--dataset=cifar100', f'--data_dir={out}']
    archive = catalog.CIFAR100.archives[1]._replace(urls=[(tmp_path / 'copy').as_uri()])
    for md5 in (archive.md5, hashlib.md5((tmp_path / 'copy').read_bytes()).hexdigest()):
        small = catalog.CIFAR100._replace(archives=[archive._replace(md5=md5)], sha1={})
        monkeypatch.setitem(catalog.PUBLISHED, 'cifar100', small)
        status, stdout, stderr = programs.call('cifar10_dataset', 'download', *args)
        if md5 == archive.md5:
            assert (
                status == 1 and 'not the published archive' in stderr and listing.names(out) == []
            )
    assert (status, stderr) == (0, '')
    line = '400 training and 200 test examples of %s in %s\n'
    directory = out / 'cifar-100-binary'
    assert stdout.endswith(line % ('100 classes (fine_0, fine_1, fine_2 ... fine_99)', directory))
    assert listing.names(directory) == listing.names(tmp_path / 'made')


def test_an_existing_data_set_is_used_unless_another_one_is_requested(
    tmp_path, small, prepare, monkeypatch
):
    data_sets.write_cifar100(tmp_path / 'cifar-100-binary')
    monkeypatch.setitem(catalog.PUBLISHED, 'cifar10', _at(small, 'http://127.0.0.1:1/'))
    args = [f'--data_dir={tmp_path}']
    for command in (['download'], ['download', '--dataset=cifar10']):
        status, _, stderr = programs.call('cifar10_dataset', *(command + args))
        assert status == 1 and ' error: Cannot download CIFAR-10 from http://127' in stderr
    assert prepare(*args).num_classes == 100
    status, _, stderr = programs.call('cifar10_dataset', 'info', '--dataset=cifar10', *args)
    assert status == 1 and 'There is no such data set in ' in stderr
    assert listing.names(tmp_path) == ['cifar-100-binary']
