"""Own images: conversion, training, evaluation."""

import csv
import os
import pathlib
import signal

import pytest

from cifar10.data import conversion, dataset
from tests.helpers import data_sets, faults, listing, messages, pictures, programs


def test_convert_holdout_info(tmp_path):
    top = pictures.write(tmp_path / 'my photos', ['cats', 'd\u00f6gs'], 20)
    out, held = str(tmp_path / 'out'), str(tmp_path / 'held')
    line = '{} training and {} test examples of cats, d\u00f6gs in {}\n'
    status, stdout, stderr = programs.call(
        'cifar10_dataset', 'convert', top, out, '--test_fraction=0.25'
    )
    assert (status, stderr) == (0, '') and 'Converting 100%: ' in stdout
    assert stdout.endswith(line.format(30, 10, out))
    found = programs.call('cifar10_dataset', 'holdout', out, held, '--num_examples=6')
    assert found == (0, line.format(24, 6, held), '')
    status, stdout, stderr = programs.call('cifar10_dataset', 'info', '--data_dir=' + held)
    assert (status, stderr) == (0, '') and stdout.endswith('\n' + line.format(24, 6, held))
    path = dataset.read(held).train.paths[2]
    content = bytearray(pathlib.Path(path).read_bytes())
    content[100] ^= 1
    with open(path, 'wb') as changed:
        changed.write(content)
    status, stdout, stderr = programs.call('cifar10_dataset', 'info', '--data_dir=' + held)
    assert (status, stdout) == (1, '') and stderr.startswith(
        f'cifar10_dataset.py: error: {path} has been changed: '
    )


def test_the_status_tells_that_files_are_left_out(tmp_path):
    top, out = pictures.write(tmp_path / 'photos', ['a', 'b'], 3), str(tmp_path / 'out')
    (tmp_path / 'photos' / 'a' / '1.png').write_text('a text')
    status, stdout, stderr = programs.call('cifar10_dataset', 'convert', top, out)
    assert status == 1 and stdout.endswith(f'\n3 training and 2 test examples of a, b in {out}\n')
    faults.assert_one_line(
        stderr, os.path.join(top, 'a', '1.png') + ' is left out: ' + messages.NOT_AN_IMAGE
    )


@pytest.mark.parametrize(
    'args, status, told',
    [
        (['convert', 'a'], 2, 'the arguments must be convert SRC OUT, not '),
        (['verify'], 2, 'the arguments must be download|synthetic|convert|holdout|info, not '),
        (['convert', 'nothing', 'b'], 1, 'nothing does not exist: give a directory with '),
        (['holdout', 'nothing', 'b'], 1, 'nothing does not exist: give the --data_dir of '),
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
def test_an_interrupted_conversion(tmp_path):
    top = pictures.write(tmp_path / 'photos', ['a', 'b'], 2)
    photograph = os.path.join(top, 'b', '0.jpg')
    pictures.smooth(1000, 1000).save(photograph)
    for i in range(1, 600):  # ten seconds of work
        os.link(photograph, os.path.join(top, 'b', f'{i}.jpg'))
    process = programs.start('cifar10_dataset', 'convert', top, str(tmp_path / 'out'))
    faults.read_until(process, 'Converting ')
    assert any(name.startswith('.cifar10-incomplete-') for name in os.listdir(str(tmp_path)))
    process.send_signal(signal.SIGINT)
    status, _, stderr = faults.end(process)
    assert status == 130 and stderr == 'cifar10_dataset.py: interrupted (SIGINT)\n'
    assert listing.names(tmp_path) == ['photos']


@pytest.mark.slow
def test_two_classes_from_folders(tmp_path):
    """The page own_images.md shows the precision of a longer run."""
    top = pictures.write(tmp_path / 'photos', ['cat', 'dog'], 40, size=(37, 50))
    out, run = str(tmp_path / 'out'), str(tmp_path / 'run')
    assert conversion.convert(top, out, print) == 0
    train = [f'--train_dir={run}', '--recipe=fast', '--max_steps=1', '--eval_every=0']
    evaluate = ['--checkpoint_dir=' + run, '--eval_dir=' + run + '_eval', '--run_once']
    evaluate += [f'--predictions_file={tmp_path / "predictions.csv"}']
    for script, args, told in [
        ('cifar10_train', train, [f'Data: 72 examples of cat, dog in {out}', '1066754 parameters']),
        ('cifar10_eval', evaluate, [' of 8, step 1)']),
    ]:
        status, stdout, stderr = programs.call(script, '--data_dir=' + out, *args)
        assert (status, stderr) == (0, '') and all(part in stdout for part in told)
    with open(str(tmp_path / 'predictions.csv'), newline='') as file:
        predictions = list(csv.DictReader(file))
    test_files = dataset.read(out).test.image_files()
    assert [row['file'] for row in predictions] == list(test_files.values())
    other = str(tmp_path / 'other')
    conversion.convert(pictures.write(tmp_path / 'more', ['cat', 'horse'], 10), other, print)
    for script, args in [('cifar10_train', train), ('cifar10_eval', evaluate)]:
        status, _, stderr = programs.call(script, '--data_dir=' + other, *args)
        assert status == 1
        faults.assert_one_line(stderr, f'The run in {run} was trained', 'cat, dog')


@pytest.mark.slow
@pytest.mark.long
def test_cifar100_in_a_cluster_and_in_towers(tmp_path):
    """Two label bytes, in each kind of trainer; each one resumes the run of another."""
    data_sets.write_cifar100(tmp_path / 'cifar-100-binary')
    run = str(tmp_path / 'run')
    flags = [f'--data_dir={tmp_path}', f'--train_dir={run}', '--batch_size=32']
    first = programs.succeed('cifar10_multi_gpu_train', '--num_gpus=2', '--max_steps=2', *flags)
    assert f'Network: {1068298 + 90 * 193} parameters' in first and 'of 200, step 2)' in first
    status, stdout, stderr = programs.run(
        'cifar10_launch', '--num_ps=1', '--num_workers=2', '--', '--max_steps=4', *flags
    )
    assert status == 0 and 'of 200, step 4)' in stdout, stderr
    assert 'of 200, step 6)' in programs.succeed('cifar10_train', '--max_steps=6', *flags)
