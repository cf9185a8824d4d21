"""Event files of a run with known values."""

import os

import tensorflow.compat.v1 as tf

from cifar10.report import tensorboard
from cifar10.runs import event_file


def write(directory, first_step=None, **scalars):
    """Write {tag: {step: value}} as a trainer or an evaluation that starts at `first_step`."""
    os.makedirs(str(directory), exist_ok=True)
    with event_file.SummaryWriter(str(directory)) as summary_writer:
        tensorboard.write_graph(summary_writer, tf.Graph())
        if first_step is not None:
            tensorboard.write_session_start(summary_writer, first_step)
        for tag, values in scalars.items():
            for step, value in values.items():
                summary_writer.add_summary(
                    tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)]), step
                )


def write_run(tmp_path):
    """Write a run of 200 steps with one evaluation; return its train_dir and eval_dir."""
    write(tmp_path / 'train', 0, epoch={100: 1, 200: 2}, sec_per_step={100: 0.6, 200: 0.6})
    write(tmp_path / 'eval', **{'Precision @ 1': {200: 0.5}})
    return str(tmp_path / 'train'), str(tmp_path / 'eval')
