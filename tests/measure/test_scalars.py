"""Event files that are damaged, or not what they are called, as the table and the plot of runs read
them."""

import os
import struct
import tempfile

import pytest
from tensorboard.compat.tensorflow_stub import pywrap_tensorflow
import tensorflow.compat.v1 as tf

from cifar10.errors import UserError
from cifar10.measure import results
from tests.helpers import measured_runs, small_run, special_files
from tests.helpers.special_files import deadline  # noqa: F401


@pytest.mark.parametrize('kind', special_files.KINDS)
@pytest.mark.parametrize('directory', ['train', 'eval'])
def test_no_file_in_place_of_an_event_file(tmp_path, kind, directory):
    run = measured_runs.write_run(tmp_path)
    path = tmp_path / directory / 'events.out.tfevents.9999999999.x'
    special_files.make(path, kind)
    with pytest.raises(UserError, match='^%s is %s, not a file: move it away$' % (path, kind)):
        results.read_curve(run)


def test_what_lies_beside_the_event_files(tmp_path):
    """TensorBoard does not open it."""
    run = measured_runs.write_run(tmp_path)
    special_files.make(tmp_path / 'train' / 'other', 'a FIFO')
    assert results.read_curve(run).precision.tolist() == [0.5]


@pytest.mark.parametrize('tag', ['epoch', 'sec_per_batch', 'Precision @ 1'])
@pytest.mark.parametrize(
    'step, value, shown',
    [
        (100, float('nan'), 'nan at step 100'),
        (100, float('inf'), 'inf at step 100'),
        (300, 2e9, '2e.09 at step 300'),
        (300, -1, '-1 at step 300'),
        (-5, 1, '1 at step -5'),
    ],
)
def test_numbers_that_no_run_has(tmp_path, tag, step, value, shown):
    run = measured_runs.write_run(tmp_path)
    directory = run.eval_dir if tag.startswith('Precision') else run.train_dir
    measured_runs.write(directory, **{tag: {step: value}})
    with pytest.raises(
        UserError,
        match=r'^An event file in %s is damaged, or not of a run \("%s" is %s\): move it away$'
        % (directory, tag, shown),
    ):
        results.read_curve(run)


@pytest.mark.parametrize('lost', [1, 7, 40])
def test_an_event_that_a_killed_process_has_not_finished(tmp_path, lost):
    """The last one: the speed at step 200."""
    run = measured_runs.write_run(tmp_path)
    (path,) = (tmp_path / 'train').iterdir()
    os.truncate(str(path), path.stat().st_size - lost)
    curve = results.read_curve(run)
    assert (curve.epochs.tolist(), curve.minutes.tolist()) == ([2], pytest.approx([2]))


def test_a_run_that_was_too_short(tmp_path, data_dir):
    small_run.train(tmp_path, data_dir, 3, summary_steps=4)
    with pytest.raises(
        UserError,
        match='^%s holds no event file with "epoch": the run was shorter than --summary_steps, so train on '
        'with a smaller one$' % tmp_path,
    ):
        results.read_curve(results.Run('short', str(tmp_path), str(tmp_path)))


def _record(event, length=None):
    """A record of an event file, which may lie about its length."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'file')
        with tf.io.TFRecordWriter(path) as writer:
            writer.write(event)
        with open(path, 'rb') as opened:
            content = opened.read()
    if length is None:
        return content
    header = struct.pack('<Q', length)
    return header + struct.pack('<I', pywrap_tensorflow.masked_crc32c(header)) + content[12:]


@pytest.mark.parametrize(
    'change, complaint',
    [
        (lambda content: content + bytes(100), None),
        (lambda content: content + b'\1' * 7, None),
        (
            lambda content: content + _record(b'\xff' * 5),
            'An event file in {directory} is damaged .*: move it away',
        ),
        (lambda content: content + _record(b'', 2**31), '{path} is damaged: move it away'),
        (lambda content: content + _record(b'', 2**63), '{path} is damaged: move it away'),
        (lambda content: b'\xff' * 1000, '{path} is damaged: move it away'),
        (lambda content: b'', '{directory} holds no event file with "epoch": .*'),
        (lambda content: bytes(1000), '{directory} holds no event file with "epoch": .*'),
    ],
)
def test_a_damaged_event_file(tmp_path, change, complaint):
    """TensorFlow takes the memory for any length: of 2 ** 40 it would die."""
    run = measured_runs.write_run(tmp_path)
    (path,) = (tmp_path / 'train').iterdir()
    path.write_bytes(change(path.read_bytes()))
    if complaint is None:
        assert results.read_curve(run).precision.tolist() == [0.5]
    else:
        with pytest.raises(
            UserError, match='^%s$' % complaint.format(directory=run.train_dir, path=path)
        ):
            results.read_curve(run)
