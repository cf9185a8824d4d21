"""Checksums and atomic writing of files."""

import hashlib
import os
import sys

import pytest

from cifar10.system import files
from tests.helpers import messages


def test_what_was_there_stays_if_the_disk_is_full(tmp_path):
    """A limit on file sizes simulates a full disk."""
    resource = pytest.importorskip('resource')
    (tmp_path / 'file').write_text('old')
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with messages.raises(rf'^Cannot write {tmp_path}/file \(File too large\): make room$'):
            files.atomic_write(str(tmp_path / 'file'), 'new', 'make room')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(str(tmp_path)) == ['file'] and (tmp_path / 'file').read_text() == 'old'


def test_check_writable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ('new', str(tmp_path / 'new')):
        files.check_writable(path)
    for path, reason in [
        (str(tmp_path), 'it is not a regular file'),
        (str(tmp_path) + '/', 'it is not a regular file'),
        (os.devnull, 'it is not a regular file'),
        (str(tmp_path / 'nowhere' / 'new'), 'No such file or directory'),
    ]:
        with messages.raises(
            rf'^Cannot write {path} \({reason}\): name a file in an existing, writable directory'
        ):
            files.check_writable(path)
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.skipif(sys.version_info < (3, 9), reason='hashlib has no parameter usedforsecurity')
def test_checksums_in_fips_mode(monkeypatch, tmp_path):
    """MD5 and SHA-1 raise ValueError there, unless they are for other uses than security."""
    new = hashlib.new

    def new_in_fips_mode(name, data=b'', usedforsecurity=True):
        if name in ('md5', 'sha1') and usedforsecurity:
            raise ValueError('disabled for FIPS')
        return new(name, data)

    monkeypatch.setattr(hashlib, 'new', new_in_fips_mode)
    (tmp_path / 'file').write_bytes(b'content')
    for algorithm in ('md5', 'sha1', 'sha256'):
        expected = new(algorithm, b'content').hexdigest()
        assert files.digest(str(tmp_path / 'file'), algorithm) == expected
