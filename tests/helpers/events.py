"""What event files hold."""
import glob
import os

import tensorflow.compat.v1 as tf


def read(directory):
    """All events of the directory's event files, in the order of the files."""
    paths = sorted(glob.glob(os.path.join(str(directory), 'events.*')), key=lambda path: path.split('tfevents.')[1])
    return [event for path in paths for event in tf.train.summary_iterator(path)]


def values(event):
    """A list of (step, tag, value) of an event, without the layout of the dashboard."""
    return [(event.step, value.tag, value.simple_value) for value in event.summary.value
            if value.metadata.plugin_data.plugin_name != 'custom_scalars']


def scalars(directory):
    """A list of (step, tag, value)."""
    return [found for event in read(directory) for found in values(event)]


def shown(directory):
    """What TensorBoard shows of `scalars`: where a run begins again, it drops what was written about later steps before."""
    found = []
    for event in read(directory):
        if event.session_log.status == tf.SessionLog.START:
            found = [(step, tag, value) for step, tag, value in found if step < event.step]
        found += values(event)
    return found


def shown_steps(directory):
    """The steps of what TensorBoard shows of each tag, in the order of the files: dict from tags to lists."""
    found = {}
    for step, tag, _ in shown(directory):
        found.setdefault(tag, []).append(step)
    return found
