"""Own images: conversion, training, evaluation."""

import os
import pathlib
import re
import signal

import numpy as np
from PIL import Image
import pytest

from cifar10.data import dataset, verification
from tests.helpers import faults, messages, pictures, programs

CONVERTED = 'Converting 100%: '


def _convert(tmp_path, *args):
    status, stdout, stderr = programs.call('cifar10_dataset', 'convert', *args)
    assert (status, stderr) == (0, ''), stderr
    assert CONVERTED in stdout
    return stdout.splitlines()[-1]


def test_convert_holdout_verify(tmp_path):
    top, out, held = (
        pictures.write(tmp_path / 'my photos', ['cats', 'd\u00f6gs'], 20),
        str(tmp_path / 'out'),
        str(tmp_path / 'held'),
    )
    assert (
        _convert(tmp_path, top, out, '--test_fraction=0.25')
        == '30 training and 10 test examples of cats, d\u00f6gs in ' + out
    )
    assert programs.call('cifar10_dataset', 'holdout', out, held, '--num_examples=6') == (
        0,
        f'24 training and 6 test examples of cats, d\u00f6gs in {held}\n',
        '',
    )
    assert programs.call('cifar10_dataset', 'verify', '--data_dir=' + held) == (
        0,
        f'24 training and 6 test examples of cats, d\u00f6gs in {held}\n',
        '',
    )
    path = dataset.read(held).train.paths[2]
    content = bytearray(pathlib.Path(path).read_bytes())
    content[100] ^= 1
    with open(path, 'wb') as changed:
        changed.write(content)
    status, stdout, stderr = programs.call('cifar10_dataset', 'verify', '--data_dir=' + held)
    assert (status, stdout) == (1, '') and stderr.startswith(
        f'cifar10_dataset.py: error: {path} has been changed: '
    )


def test_the_status_tells_that_files_are_left_out(tmp_path):
    top, out = pictures.write(tmp_path / 'photos', ['a', 'b'], 3), str(tmp_path / 'out')
    (tmp_path / 'photos' / 'a' / '1.png').write_text('a text')
    status, stdout, stderr = programs.call('cifar10_dataset', 'convert', top, out)
    assert status == 1 and stdout.endswith(f'\n3 training and 2 test examples of a, b in {out}\n')
    faults.assert_one_line(
        stderr,
        os.path.join(top, 'a', '1.png') + ' is left out: ' + messages.NOT_AN_IMAGE,
    )


@pytest.mark.parametrize(
    'args, status, told',
    [
        (['convert', 'a'], 2, 'the arguments must be convert SRC OUT, not '),
        (['convert', 'a', ''], 2, 'the arguments must be convert SRC OUT, not '),
        (['holdout', 'a'], 2, 'the arguments must be holdout SRC OUT, not '),
        (['verify', 'x'], 2, 'the arguments must be verify, not '),
        (['verify', '--strict'], 1, '--strict has no effect on verify: leave it out'),
        (['convert', 'a', 'b', '--num_examples=5'], 1, '--num_examples has no effect on convert: '),
        (
            ['convert', 'a', 'b', '--label_mode=coarse'],
            1,
            '--label_mode has no effect on convert: ',
        ),
        (['synthetic', '--label_mode=coarse'], 1, '--label_mode has no effect on synthetic: '),
        (['holdout', 'a', 'b', '--test_fraction=0.5'], 1, '--test_fraction has no effect on '),
        (['convert', 'nothing', 'b'], 1, 'nothing does not exist: give a directory with '),
        (['holdout', 'nothing', 'b'], 1, 'nothing does not exist: give the --data_dir of '),
        (
            ['synthetic', '--dataset=cifar100'],
            1,
            '--dataset=cifar100 cannot be generated: use the ',
        ),
        (['download', '--dataset=synthetic'], 1, '--dataset=synthetic cannot be downloaded: '),
        (['convert', 'a', 'gs://bucket/x'], 1, 'gs://bucket/x is not a local path: '),
        (['convert', 'a', 'b', '--test_fraction=nan'], 2, 'flag --test_fraction=nan: is not a '),
    ],
)
def test_mistakes(tmp_path, monkeypatch, args, status, told):
    monkeypatch.chdir(tmp_path)
    found, stdout, stderr = programs.call('cifar10_dataset', *args)
    assert (
        (found, stdout) == (status, '')
        and stderr.startswith('cifar10_dataset.py: error: ' + told)
        and stderr.count('\n') == 1
    )
    assert os.listdir('.') == []


@pytest.mark.slow
@pytest.mark.parametrize(
    'number', [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_an_interrupted_conversion(tmp_path, number):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 2)
    photograph = os.path.join(top, 'b', '0.jpg')
    pictures.smooth(1000, 1000).save(photograph)
    for i in range(1, 600):  # ten seconds of work
        os.link(photograph, os.path.join(top, 'b', f'{i}.jpg'))
    process = programs.start('cifar10_dataset', 'convert', top, str(tmp_path / 'out'))
    faults.read_until(process, 'Converting ')
    assert any(name.startswith('.cifar10-incomplete-') for name in os.listdir(str(tmp_path)))
    process.send_signal(number)
    status, _, stderr = faults.end(process)
    assert status == 128 + number and stderr == f'cifar10_dataset.py: interrupted ({number.name})\n'
    assert os.listdir(str(tmp_path)) == ['photos']


def _flags(data, run):
    return [f'--data_dir={data}', f'--train_dir={run}', '--batch_size=32', '--log_frequency=5']


@pytest.mark.slow
def test_two_classes_from_folders(tmp_path):
    """The page own_images.md shows the precision of a longer run."""
    top = pictures.write(tmp_path / 'photos', ['cat', 'dog'], 40, size=(37, 50))
    out, run = str(tmp_path / 'out'), str(tmp_path / 'run')
    _convert(tmp_path, top, out)
    train = ['--recipe=fast', '--max_steps=2', '--eval_every=0']
    stdout = programs.succeed('cifar10_train', *_flags(out, run) + train)
    assert 'Data: 72 examples of cat, dog in ' + out in stdout
    assert f'Network: {1068298 - 8 * 193} parameters' in stdout
    evaluate = ['--checkpoint_dir=' + run, '--eval_dir=' + run + '_eval', '--run_once']
    stdout = programs.succeed('cifar10_eval', '--data_dir=' + out, '--num_views=10', *evaluate)
    assert ' of 8, 10 views, step 2)' in stdout
    other = str(tmp_path / 'other')
    _convert(tmp_path, pictures.write(tmp_path / 'more', ['cat', 'horse'], 10), other)
    for script, args in [
        ('cifar10_train', _flags(other, run) + train),
        ('cifar10_eval', ['--data_dir=' + other] + evaluate),
    ]:
        status, _, stderr = programs.call(script, *args)
        assert status == 1 and stderr.count('\n') == 1
        assert re.match(f'{script}.py: error: The run in {run} was trained .*cat, dog', stderr)


@pytest.mark.slow
@pytest.mark.long
def test_300_classes_in_a_cluster_and_in_towers(tmp_path):
    """Labels of two bytes, in each kind of trainer; each one resumes the run of another."""
    for i in range(300):
        folder = tmp_path / 'photos' / (f'class {i:03d}')
        folder.mkdir(parents=True)
        color = np.array([i % 7, i // 7 % 7, i // 49]) * 40
        for j in range(2):
            Image.new('RGB', (32, 32), tuple(int(value) for value in color + j)).save(
                str(folder / (f'{j}.png'))
            )
    out, run = str(tmp_path / 'out'), str(tmp_path / 'run')
    last = _convert(tmp_path, str(tmp_path / 'photos'), out)
    assert (
        last
        == '300 training and 300 test examples of 300 classes (class 000, class 001, class 002 ... class 299) in '
        + out
    )
    assert (
        dataset.read(out).train.record_bytes == 3074
        and verification.verify(dataset.read(out).train) == 300
    )
    parameters = f'Network: {1068298 + 290 * 193} parameters'
    first = programs.succeed(
        'cifar10_multi_gpu_train', '--num_gpus=2', '--max_steps=2', *_flags(out, run)
    )
    assert parameters in first and 'of 300, step 2)' in first
    status, stdout, stderr = programs.run(
        'cifar10_launch', '--num_ps=1', '--num_workers=2', '--', '--max_steps=4', *_flags(out, run)
    )
    assert status == 0 and 'of 300, step 4)' in stdout, stderr
    assert 'of 300, step 6)' in programs.succeed(
        'cifar10_train', '--max_steps=6', *_flags(out, run)
    )
    classic = programs.succeed(
        'cifar10_classic',
        '--max_steps=1',
        '--log_frequency=1',
        '--data_dir=' + out,
        '--train_dir=' + run + '_classic',
    )
    (loss,) = re.findall(': step 1, loss = (.*?) ', classic)
    assert float(loss) == pytest.approx(np.log(300) + 2.37, abs=0.2)  # and the weight decay
