"""What event files hold."""
import glob
import os

import tensorflow.compat.v1 as tf


def read(directory):
    """All events of the directory's event files, in the order of the files."""
    paths = sorted(glob.glob(os.path.join(str(directory), 'events.*')), key=lambda path: path.split('tfevents.')[1])
    return [event for path in paths for event in tf.train.summary_iterator(path)]


def scalars(directory):
    """A list of (step, tag, value)."""
    return [(event.step, value.tag, value.simple_value) for event in read(directory) for value in event.summary.value]
