"""Trace of one step."""

import json
import re

import pytest
import tensorflow.compat.v1 as tf

from tests.helpers import events
from tests.helpers.small_run import train


def _tagged(directory):
    """Return (step, tag, metadata) of TensorBoard's tab Graphs."""
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
    """The trace file and the event file hold the convolutions of both towers."""
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


@pytest.mark.parametrize('profile_step', [1, 7])
def test_one_step_is_traced(tmp_path, data_dir, capsys, profile_step):
    """A resumed run traces no second time. Step 7 follows the first start, step 1 is in it.

    The other start says that it has no trace.
    """
    for max_steps in (5, 9):
        train(tmp_path, data_dir, max_steps, profile_step=profile_step)
    (path,) = tmp_path.glob('trace*')
    assert path.name == f'trace-{profile_step}.json'
    told = f'Traced step {profile_step}: open {path} with '
    stdout = capsys.readouterr().out
    assert stdout.count(told) == 1
    steps = {1: '6 to 9', 7: '1 to 5'}[profile_step]
    assert re.findall('No trace: .*', stdout) == [
        f'No trace: step {profile_step} is outside steps {steps}'
    ]
    assert [step for step, _, _ in _tagged(tmp_path)] == [profile_step]
