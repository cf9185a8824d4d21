"""The trace of one step."""

import json
import os

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import files
from cifar10.errors import UserError
from tests.helpers import events
from tests.helpers.small_run import train


def _tagged(directory):
    """The steps, tags and metadata that TensorBoard's tab Graphs shows."""
    return [
        (
            event.step,
            event.tagged_run_metadata.tag,
            tf.RunMetadata.FromString(event.tagged_run_metadata.run_metadata),
        )
        for event in events.read(directory)
        if event.HasField('tagged_run_metadata')
    ]


def test_a_step_of_two_towers(runs):
    """Each tower's convolutions are in the file, complete events with times; and in the event
    file."""
    trace = json.loads((runs / 'fast' / 'trace-2.json').read_text())
    complete = [event for event in trace['traceEvents'] if event['ph'] == 'X']
    assert all(event['dur'] >= 0 and event['ts'] >= 0 for event in complete)
    names = {event['args']['name'] for event in complete if 'Conv2D' in event['name']}
    assert {name.split('/')[0] for name in names} == {'tower_0', 'tower_1'}
    ((step, tag, metadata),) = _tagged(runs / 'fast')
    assert (step, tag) == (2, 'step 2')
    assert names <= {
        node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats
    }


@pytest.mark.parametrize('profile_step', [1, 7, None])
def test_one_step_is_traced(tmp_path, data_dir, capsys, profile_step):
    """Once, also by a run that is resumed: step 7 is after the first start, step 1 in it."""
    for max_steps in (5, 9):
        train(tmp_path, data_dir, max_steps, profile_step=profile_step)
    told = (
        'Traced step %s: open %s/trace-%s.json with https://ui.perfetto.dev or chrome://tracing\n'
    )
    told %= (profile_step, tmp_path, profile_step)
    assert capsys.readouterr().out.count(told) == (profile_step is not None)
    traced = [profile_step] if profile_step else []
    assert sorted(tmp_path.glob('trace*')) == [tmp_path / ('trace-%d.json' % i) for i in traced]
    assert [step for step, _, _ in _tagged(tmp_path)] == traced


def test_a_trace_that_cannot_be_written(tmp_path, data_dir, monkeypatch, capsys):
    """Training goes on, with one line; at the end it is missing."""
    write_whole = files.write_whole

    def full(path, content, remedy):
        if os.path.basename(path).startswith('trace'):
            raise UserError('Cannot write %s (No space left on device): %s' % (path, remedy))
        write_whole(path, content, remedy)

    monkeypatch.setattr(files, 'write_whole', full)
    with pytest.raises(
        UserError, match='^The run is saved, but without the trace: .*/trace-2.json '
    ):
        train(tmp_path, data_dir, 4, profile_step=2)
    told = capsys.readouterr()
    assert 'Traced' not in told.out and (tmp_path / 'model.ckpt-4.index').exists()
    (line,) = [line for line in told.err.splitlines() if 'trace-2' in line]
    assert line.endswith(
        'Cannot write %s (No space left on device): make room there, or give another --train_dir. Training goes on'
        % (tmp_path / 'trace-2.json')
    )
