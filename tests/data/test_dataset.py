"""The files of a data set: their verification, and one process at a time that writes them."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import cifar10
from cifar10.data import dataset, synthetic, verification, writing
from cifar10.errors import UserError
from tests.helpers import data_sets, programs, queues, special_files
from tests.helpers.special_files import deadline, needs_root  # noqa: F401


def test_verify_counts_examples(data_dir):
    assert verification.verify(dataset.read(data_dir).train) == 300
    assert verification.verify(dataset.read(data_dir).test) == 50


def _with_label_10(content):
    return content[: 3073 * 17] + b'\x0a' + content[3073 * 17 + 1 :]


@pytest.mark.parametrize(
    'change, fault',
    [
        (
            lambda content: content + b'x',
            'is not a whole number of records: its 184381 bytes are 60 records of 3073 bytes and 1 more;',
        ),
        (
            lambda content: b'\0' * 100,
            'is not a whole number of records: its 100 bytes are 0 records of 3073 bytes and 100 more;',
        ),
        (lambda content: b'', 'is empty:'),
        (
            _with_label_10,
            r'has labels that are not 0 to 9: 1 of them, the first \(10\) in record 17;',
        ),
        (
            lambda content: b'\xff' * len(content),
            r'has labels that are not 0 to 9: 60 of them, the first \(255\) in record 0;',
        ),
    ],
)
def test_verify_names_the_file_and_its_fault(own_data_dir, change, fault):
    path = dataset.read(own_data_dir).train.paths[2]
    with open(path, 'rb') as whole:
        content = whole.read()
    with open(path, 'wb') as damaged:
        damaged.write(change(content))
    with pytest.raises(UserError, match='^%s %s replace it with a good copy$' % (path, fault)):
        verification.verify(dataset.read(own_data_dir).train)


def test_verify_names_a_missing_file(tmp_path):
    with pytest.raises(UserError, match='data_batch_1.bin is missing'):
        verification.verify(dataset.read(str(tmp_path)).train)


@pytest.mark.parametrize('kind', special_files.KINDS)
def test_verify_names_what_is_no_file(own_data_dir, kind):
    path = dataset.read(own_data_dir).train.paths[3]
    os.remove(path)
    special_files.make(path, kind)
    assert writing.is_present(own_data_dir)
    with pytest.raises(
        UserError, match='^%s is %s, not a file: replace it with a good copy$' % (path, kind)
    ):
        verification.verify(dataset.read(own_data_dir).train)


def test_verify_of_data_below_a_file(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(UserError, match='file/cifar-10-batches-bin/data_batch_1.bin is missing'):
        verification.verify(dataset.read(str(tmp_path / 'file')).train)


def test_verify_takes_links_to_files(own_data_dir, tmp_path):
    path = dataset.read(own_data_dir).test.paths[0]
    os.rename(path, str(tmp_path / 'elsewhere'))
    os.symlink(str(tmp_path / 'elsewhere'), path)
    assert verification.verify(data_sets.records([path])) == 50


def test_verify_counts_in_a_file_of_several_pieces(tmp_path):
    """2,500 records are read in three pieces; the bad label is in the last one."""
    records = np.zeros([2500, 3073], np.uint8)
    records.tofile(str(tmp_path / 'file'))
    assert verification.verify(data_sets.records([tmp_path / 'file'])) == 2500
    records[2400, 0] = 10
    records.tofile(str(tmp_path / 'file'))
    with pytest.raises(UserError, match=r'1 of them, the first \(10\) in record 2400;'):
        verification.verify(data_sets.records([tmp_path / 'file']))
    os.truncate(str(tmp_path / 'file'), 2450 * 3073 - 1)
    with pytest.raises(
        UserError, match='its 7528849 bytes are 2449 records of 3073 bytes and 3072 more;'
    ):
        verification.verify(data_sets.records([tmp_path / 'file']))


@pytest.mark.parametrize(
    'name',
    [
        '[12]',
        'a*b',
        'what?',
        'back\\slash',
        '"quoted"',
        "it's",
        'two words',
        ' ',
        'gr\u00fcn \u6570\u636e',
        '{x}',
        '$HOME',
        '~',
        'a:b',
        '%s',
        '-x',
        'a,b',
    ],
)
def test_every_name_of_a_directory(tmp_path, name):
    """TensorFlow reads from it as well, and nothing is written beside it."""
    (tmp_path / '1').mkdir()
    (tmp_path / name / '.cifar10-incomplete-of-a-killed-process').mkdir(parents=True)
    data_dir = str(tmp_path / name)
    synthetic.maybe_write(data_dir, records_per_file=10)
    assert writing.is_present(data_dir) and verification.verify(dataset.read(data_dir).train) == 50
    assert os.listdir(data_dir) == [dataset.DIRECTORY]
    images, labels = cifar10.inputs(eval_data=True, data_dir=data_dir, batch_size=10)
    found = queues.run(labels, 1)[0]
    assert sorted(found) == list(range(10))
    assert (
        sorted(os.listdir(str(tmp_path))) == sorted(['1', name])
        and os.listdir(str(tmp_path / '1')) == []
    )


@pytest.mark.parametrize('kind', ['a file', 'a link'] + special_files.KINDS[1:])
def test_no_directory_in_place_of_the_data_set(tmp_path, kind):
    """Named at the start, not after a download."""
    path = tmp_path / dataset.DIRECTORY
    if kind == 'a file':
        path.write_text('precious')
    elif kind == 'a link':
        path.symlink_to('nowhere')
    else:
        special_files.make(path, kind)
    before = os.lstat(str(path))
    with pytest.raises(
        UserError, match='^%s is not a directory: move it away, or give another --data_dir$' % path
    ):
        synthetic.maybe_write(str(tmp_path))
    assert os.path.samestat(os.lstat(str(path)), before) and os.listdir(str(tmp_path)) == [
        dataset.DIRECTORY
    ]


@needs_root
def test_what_another_user_could_replace_is_not_written_to_but_read(own_data_dir, tmp_path):
    (tmp_path / 'shared').mkdir()
    (tmp_path / 'shared').chmod(0o1777)
    theirs = tmp_path / 'shared' / 'theirs'
    theirs.mkdir()
    os.chown(str(theirs), 12345, -1)
    with pytest.raises(UserError, match='^%s belongs to another user, ' % theirs):
        synthetic.maybe_write(str(theirs), records_per_file=10)
    assert os.listdir(str(theirs)) == []
    os.rename(os.path.join(own_data_dir, dataset.DIRECTORY), str(theirs / dataset.DIRECTORY))
    synthetic.maybe_write(str(theirs))
    assert verification.verify(dataset.read(str(theirs)).test) == 50


def test_a_place_that_is_not_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match='^gs://bucket/data is not a place on this machine'):
        synthetic.maybe_write('gs://bucket/data', records_per_file=10)
    assert os.listdir(str(tmp_path)) == []


def test_half_a_data_set_is_left_alone(own_data_dir):
    os.remove(dataset.read(own_data_dir).train.paths[3])
    before = sorted(os.listdir(os.path.join(own_data_dir, dataset.DIRECTORY)))
    with pytest.raises(UserError, match='data_batch_4.bin is missing: put it back, or move'):
        synthetic.maybe_write(own_data_dir)
    assert sorted(os.listdir(os.path.join(own_data_dir, dataset.DIRECTORY))) == before


def test_a_bad_new_directory_is_removed(tmp_path):
    with pytest.raises(UserError, match='data_batch_1.bin is empty'):
        with writing.new_directory(str(tmp_path / dataset.DIRECTORY)) as directory:
            open(os.path.join(directory, 'data_batch_1.bin'), 'w').close()
    assert os.listdir(str(tmp_path)) == []


def test_a_second_process_finds_the_data_set(tmp_path):
    script = (
        'from cifar10.data import synthetic; synthetic.maybe_write(%r, records_per_file=20)'
        % str(tmp_path)
    )
    with writing.preparing(str(tmp_path)) as missing:
        assert missing
        process = subprocess.Popen(
            [sys.executable, '-u', '-c', script],
            env=dict(os.environ, PYTHONPATH=programs.ROOT),
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        assert (
            process.stdout.readline() == 'Waiting for another process that works in %s\n' % tmp_path
        )
        with writing.new_directory(str(tmp_path / dataset.DIRECTORY)) as batches:
            for index, name in enumerate(dataset.TRAIN_FILES + dataset.TEST_FILES):
                synthetic.records(30, np.random.default_rng(index)).tofile(
                    os.path.join(batches, name)
                )
            with open(os.path.join(batches, dataset.CLASS_NAMES_FILE), 'w') as names:
                names.write(' '.join(synthetic.CLASS_NAMES))
    assert process.communicate(timeout=60) == ('', None) and process.returncode == 0
    assert verification.verify(dataset.read(str(tmp_path)).test) == 30


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / '.cifar10-incomplete-xyz' / dataset.DIRECTORY).mkdir(parents=True)
    (tmp_path / 'incomplete').mkdir()  # of the user
    synthetic.maybe_write(str(tmp_path), records_per_file=10)
    assert sorted(os.listdir(str(tmp_path))) == [dataset.DIRECTORY, 'incomplete']


def test_a_signal_while_the_temporary_directory_is_made(tmp_path, monkeypatch):
    make = tempfile.mkdtemp

    def interrupted(*args, **kwargs):
        make(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, 'mkdtemp', interrupted)
    with pytest.raises(KeyboardInterrupt):
        synthetic.maybe_write(str(tmp_path), records_per_file=10)
    assert os.listdir(str(tmp_path)) == []


def test_the_directory_of_the_files_as_data_dir(own_data_dir, tmp_path):
    for data_dir in (
        os.path.join(own_data_dir, dataset.DIRECTORY),
        os.path.join(own_data_dir, dataset.DIRECTORY, ''),
    ):
        synthetic.maybe_write(data_dir)  # finds it present
        assert dataset.read(data_dir).train.paths == [
            os.path.join(data_dir, name) for name in dataset.TRAIN_FILES
        ]
        assert dataset.read(data_dir).class_names == synthetic.CLASS_NAMES
    os.rename(os.path.join(own_data_dir, dataset.DIRECTORY), str(tmp_path / 'renamed'))
    assert writing.is_present(str(tmp_path / 'renamed'))
    assert verification.verify(dataset.read(str(tmp_path / 'renamed')).test) == 50


@pytest.mark.parametrize('data_dir', ['a', 'a/cifar-10-batches-bin', 'a/cifar-10-batches-bin/'])
def test_a_data_set_is_written_below_the_parent(tmp_path, monkeypatch, data_dir):
    monkeypatch.chdir(tmp_path)
    synthetic.maybe_write(data_dir, records_per_file=10)
    assert os.listdir('.') == ['a'] and os.listdir('a') == [dataset.DIRECTORY]
    assert (
        verification.verify(dataset.read('a').train)
        == verification.verify(dataset.read(data_dir).train)
        == 50
    )


def test_the_files_of_a_data_set():
    assert dataset.read('x').train.paths == [
        'x/cifar-10-batches-bin/data_batch_%d.bin' % i for i in range(1, 6)
    ]
    assert dataset.read('x').test.paths == ['x/cifar-10-batches-bin/test_batch.bin']


def test_a_data_set_that_is_present(data_dir, tmp_path):
    assert writing.is_present(data_dir) and not writing.is_present(str(tmp_path / 'missing'))
    (tmp_path / dataset.DIRECTORY).mkdir()
    assert not writing.is_present(str(tmp_path))  # an empty directory may be filled


def test_a_new_directory_that_cannot_be_made(tmp_path):
    with pytest.raises(
        UserError,
        match='^Cannot write the data set to %s/missing/cifar-10-batches-bin .*No such file'
        % tmp_path,
    ):
        with writing.new_directory(str(tmp_path / 'missing' / dataset.DIRECTORY)):
            pass
    assert os.listdir(str(tmp_path)) == []


def test_a_new_directory_after_an_error_in_it(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with writing.new_directory(str(tmp_path / dataset.DIRECTORY)):
            1 / 0  # noqa: B018
    assert os.listdir(str(tmp_path)) == []
