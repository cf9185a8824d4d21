"""CIFAR-100: an archive of the official shape, its two kinds of labels."""

import hashlib
import io
import os
import tarfile

import numpy as np
import pytest

import cifar10
from cifar10.data import dataset, download, verification
from cifar10.errors import UserError
from tests.helpers import programs, queues
from tests.helpers.download_server import Server

FINE, COARSE = (
    ['%s_%d' % (kind, i) for i in range(count)] for kind, count in [('fine', 100), ('coarse', 20)]
)


def _rows(count, seed):
    """Records with a coarse and a fine label: superclass i has the classes 5 i to 5 i + 4."""
    rows = np.random.RandomState(seed).randint(0, 256, [count, 3074]).astype(np.uint8)
    rows[:, 1] = np.arange(count) % 100
    rows[:, 0] = rows[:, 1] // 5
    return rows


@pytest.fixture(scope='module')
def archive(tmp_path_factory):
    """The bytes of an archive with 400 training and 200 test images."""
    directory = tmp_path_factory.mktemp('archive') / 'cifar-100-binary'
    directory.mkdir()
    _rows(400, 0).tofile(str(directory / 'train.bin'))
    _rows(200, 1).tofile(str(directory / 'test.bin'))
    (directory / 'fine_label_names.txt').write_text('\n'.join(FINE) + '\n')
    (directory / 'coarse_label_names.txt').write_text('\n'.join(COARSE) + '\n')
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w:gz') as tar:
        tar.add(str(directory), 'cifar-100-binary')
    return content.getvalue()


@pytest.fixture
def server(archive, monkeypatch):
    """A server of the archive, which is taken for the published one."""
    source = download.CIFAR100.source._replace(md5=hashlib.md5(archive).hexdigest())
    monkeypatch.setattr(
        'cifar10.cli.data_flags._ARCHIVES',
        {'cifar10': download.CIFAR10, 'cifar100': download.CIFAR100._replace(source=source)},
    )
    running = Server(archive, ['none'])
    yield running
    running.close()


@pytest.fixture
def cifar100_dir(tmp_path, archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(str(tmp_path))
    return str(tmp_path / 'cifar-100-binary')


def test_the_published_archive():
    assert (
        download.CIFAR100.source.url == 'https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz'
    )
    assert download.CIFAR100.source.md5 == '03b5dce01913d631647c71ecec9e9cb8'


def test_download(tmp_path, server):
    args = ['--dataset=cifar100', '--data_dir=%s' % tmp_path, '--data_url=' + server.url]
    status, stdout, stderr = programs.call('cifar10_dataset', 'download', *args)
    assert (status, stderr) == (0, '')
    assert stdout.endswith(
        '\n400 training and 200 test examples of 100 classes (fine_0, fine_1, fine_2 ... fine_99) in %s\n'
        % (tmp_path / 'cifar-100-binary')
    )
    assert len(server.ranges) == 1
    for command in ('download', 'verify'):
        status, stdout, _ = programs.call('cifar10_dataset', command, '--label=coarse', *args)
        assert status == 0 and stdout == '400 training and 200 test examples of %s in %s\n' % (
            ', '.join(COARSE),
            tmp_path / 'cifar-100-binary',
        )
    assert len(server.ranges) == 1 and sorted(os.listdir(str(tmp_path))) == [
        'cifar-100-binary',
        'cifar-100-binary.tar.gz',
    ]
    assert sorted(os.listdir(str(tmp_path / 'cifar-100-binary'))) == [
        'coarse_label_names.txt',
        'fine_label_names.txt',
        'test.bin',
        'train.bin',
    ]


def test_another_archive_is_refused(tmp_path, server, monkeypatch):
    monkeypatch.undo()  # it is not the published one
    status, _, stderr = programs.call(
        'cifar10_dataset',
        'download',
        '--dataset=cifar100',
        '--data_dir=%s' % tmp_path,
        '--data_url=' + server.url,
    )
    assert (
        status == 1
        and ' is not the CIFAR-100 binary archive (its MD5 is ' in stderr
        and stderr.count('\n') == 1
    )
    assert os.listdir(str(tmp_path)) == []


@pytest.mark.parametrize(
    'label, names, column', [(None, FINE, 1), ('fine', FINE, 1), ('coarse', COARSE, 0)]
)
def test_both_kinds_of_labels_come_out_of_the_queues(cifar100_dir, label, names, column):
    for data_dir in (cifar100_dir, os.path.dirname(cifar100_dir)):
        found = dataset.read(data_dir, label)
        assert (found.class_names, found.num_classes, found.directory) == (
            names,
            len(names),
            cifar100_dir,
        )
    images, labels = cifar10.inputs(eval_data=True, data_dir=found, batch_size=50)
    values = queues.run([labels, images], 4)
    np.testing.assert_array_equal(
        np.concatenate([part for part, _ in values]), _rows(200, 1)[:, column]
    )
    assert verification.count_labels(found.test).tolist() == [200 // len(names)] * len(names)


def test_training_images_keep_their_labels(cifar100_dir, graph):
    """Each image, without distortion, is found by its bytes."""
    found = dataset.read(cifar100_dir, 'coarse')
    known = {row[2:].tobytes(): row[0] for row in _rows(400, 0)}
    labels, images = cifar10.input.shuffled_records(found.train, 400, 100)
    for some_labels, some_images in queues.run([labels, images], 5):
        assert [known[image.tobytes()] for image in some_images] == some_labels.tolist()


def test_labels_of_another_data_set(data_dir):
    with pytest.raises(
        UserError,
        match='^--label=coarse is for CIFAR-100, and %s/cifar-10-batches-bin holds another'
        % data_dir,
    ):
        dataset.read(data_dir, 'coarse')


def test_class_names_that_are_missing(cifar100_dir):
    os.remove(os.path.join(cifar100_dir, 'fine_label_names.txt'))
    found = dataset.read(cifar100_dir)
    assert (found.class_names, found.num_classes) == (None, 100) and verification.verify(
        found.train
    ) == 400
    with open(os.path.join(cifar100_dir, 'coarse_label_names.txt'), 'w') as names:
        names.write('only one')
    with pytest.raises(
        UserError,
        match='coarse_label_names.txt lists 2 class names, not 20: correct it, or delete it$',
    ):
        dataset.read(cifar100_dir, 'coarse')


def test_what_is_there_is_used_unless_another_one_is_wanted(cifar100_dir):
    parent = os.path.dirname(cifar100_dir)
    args = ['--data_dir=' + parent, '--data_url=nowhere']
    for command in (['download'], ['download', '--dataset=cifar10']):
        status, _, stderr = programs.call('cifar10_dataset', *(command + args))
        assert status == 1 and stderr.startswith(
            'cifar10_dataset.py: error: Cannot download nowhere ('
        )
    for script, more in [
        ('cifar10_eval', ['--run_once', '--checkpoint_dir=' + parent]),
        (
            'cifar10_train',
            ['--max_steps=1', '--batch_size=4', '--eval_steps=0', '--train_dir=%s/run' % parent],
        ),
    ]:
        status, stdout, stderr = programs.call(script, '--label=coarse', *(args + more))
        if script == 'cifar10_eval':
            assert (status, stderr) == (
                1,
                'cifar10_eval.py: error: There is no checkpoint in %s: train first, or give another '
                '--checkpoint_dir\n' % parent,
            )
        else:
            assert status == 0 and 'Data: 400 examples of coarse_0, coarse_1, ' in stdout, stderr
    assert sorted(os.listdir(parent)) == ['cifar-100-binary', 'run']


def test_cifar10_is_not_looked_for_in_a_directory_of_cifar100(cifar100_dir):
    """Its parent may hold both."""
    parent = os.path.dirname(cifar100_dir)
    os.mkdir(os.path.join(parent, dataset.DIRECTORY))
    assert dataset.read(parent).directory == os.path.join(parent, dataset.DIRECTORY)
    assert dataset.read(dataset.files_dir(parent, dataset.CIFAR100)).num_classes == 100
