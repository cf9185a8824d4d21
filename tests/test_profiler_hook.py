"""Trace of one step."""

import json
import re

import pytest
import tensorflow.compat.v1 as tf

from tests.helpers import events, programs
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
    assert names <= _names(metadata)


def _names(metadata):
    return {
        node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats
    }


def test_a_layer_is_one_box(tmp_path, data_dir):
    """In the tab Graphs, the parts of a batch are inside of the layers; the layers are a chain."""
    flags = '--batch_size=16', '--inter_op_threads=2', '--max_steps=1', '--profile_step=1'
    directories = f'--data_dir={data_dir}', f'--train_dir={tmp_path}', '--eval_every=0'
    assert programs.call('cifar10_train', *directories, *flags)[0] == 0
    shown = events.shown_graph(tmp_path)
    boxes = {node.split('/')[0] for node in shown}
    layers = ['conv1', 'pool1', 'norm1', 'conv2', 'norm2', 'pool2', 'local3', 'local4']
    assert boxes >= set(layers) and not [name for name in boxes if 'sub_batch_' in name]
    for before, after in zip(layers, layers[1:6]):
        inputs = [
            name
            for node, names in shown.items()
            for name in names
            if node.startswith(f'{after}/sub_batch_1') and name.startswith(f'{before}/sub_batch_')
        ]
        assert inputs and all('/sub_batch_1' in name for name in inputs), after
    ((_, _, metadata),) = _tagged(tmp_path)
    assert [name for name in _names(metadata) & set(shown) if name.startswith('conv2/sub_batch_1/')]


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
