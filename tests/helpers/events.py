"""Readers of event files."""

import collections
import glob
import os

from tensorboard.backend.event_processing import (
    event_accumulator,
    plugin_event_multiplexer as event_multiplexer,
)
import tensorflow.compat.v1 as tf


def number_files(directory):
    """Rename the event files of a run: in a test, the next one can start in the same second."""
    numbered = glob.glob(os.path.join(str(directory), 'events.*.run_*'))
    for path in glob.glob(os.path.join(str(directory), 'events.*')):
        if path not in numbered:
            os.rename(path, f'{path}.run_{len(numbered):03}')


def read(directory):
    """Return all events of the directory's event files, in the order of the files."""
    paths = sorted(
        glob.glob(os.path.join(str(directory), 'events.*')),
        key=lambda path: path.split('tfevents.')[1],
    )
    return [event for path in paths for event in tf.train.summary_iterator(path)]


def values(event):
    """Return [(step, tag, value)] of an event: its scalars and images."""
    return [
        (event.step, value.tag, value.simple_value)
        for value in event.summary.value
        if not value.metadata.plugin_data.plugin_name
    ]


def scalars(directory):
    """Return [(step, tag, value)]."""
    return [found for event in read(directory) for found in values(event)]


def texts(directory):
    """Return the content of TensorBoard's tab Text: {tag: [(step, Markdown)]}."""
    multiplexer = event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(directory)).Reload()
    found = {}
    for run, tags in multiplexer.PluginRunToTagToContent('text').items():
        for tag in tags:
            found[tag] = [
                (event.step, tf.make_ndarray(event.tensor_proto).item().decode())
                for event in multiplexer.Tensors(run, tag)
            ]
    return found


def shown_graph(directory):
    """Return {operation: its inputs}, names, of the graph that TensorBoard shows."""
    events = event_accumulator.EventAccumulator(str(directory)).Reload()
    return {node.name: node.input for node in events.Graph().node}


def shown_steps(directory):
    """Return the steps that TensorBoard shows, {tag: [step]}: after a resume, it drops the later
    steps written before."""
    found = collections.defaultdict(list)
    for event in read(directory):
        if event.session_log.status == tf.SessionLog.START:
            for tag, steps in found.items():
                found[tag] = [step for step in steps if step < event.step]
        for step, tag, _ in values(event):
            found[tag].append(step)
    return found
