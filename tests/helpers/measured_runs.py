"""Event files of a run with known values."""

import os

import tensorflow.compat.v1 as tf

from tests.helpers import events


def write(directory, first_step=None, **scalars):
    """Write {tag: {step: value}} as a trainer or an evaluation that starts at `first_step`."""
    os.makedirs(str(directory), exist_ok=True)
    with tf.Graph().as_default(), tf.summary.FileWriter(str(directory)) as summary_writer:
        if first_step is not None:
            log = tf.SessionLog(status=tf.SessionLog.START)
            summary_writer.add_session_log(log, first_step + 1)
        for tag, values in scalars.items():
            for step, value in values.items():
                summary_writer.add_summary(
                    tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)]), step
                )
    events.number_files(directory)


def write_run(tmp_path):
    """Write a run of 200 steps with one evaluation; return its train_dir and eval_dir."""
    write(tmp_path / 'train', 0, epoch={100: 1, 200: 2}, sec_per_step={100: 0.6, 200: 0.6})
    write(tmp_path / 'eval', **{'Precision @ 1': {200: 0.5}})
    return str(tmp_path / 'train'), str(tmp_path / 'eval')
