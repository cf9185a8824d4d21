"""What a run is, for TensorBoard: as text, and in the tab HParams, where the runs in one parent
directory compare.

The events that TensorBoard's own tensorboard.plugins.hparams.summary describes: every run tells the
columns of the table (the same ones, because TensorBoard takes those of any run), its values, and
when it has come to its end.
"""

import math
import textwrap

from google.protobuf import json_format
from tensorboard.plugins.hparams import api_pb2, summary
import tensorflow.compat.v1 as tf

from cifar10.hparams import LR_SCALINGS, OPTIMIZERS, RECIPES, SCHEDULES, HParams
from cifar10.report import tags

_PLAN_WIDTH = 120  # characters
_CHOICES = {
    'recipe': list(RECIPES),
    'optimizer': OPTIMIZERS,
    'schedule': SCHEDULES,
    'lr_scaling': LR_SCALINGS,
}
# what else is in the record of a run, and stays as it is when the run is resumed
_FURTHER = ['num_towers', 'num_examples']
# The tab shows five columns until one asks for more.
_FIRST = ['recipe', 'optimizer', 'initial_learning_rate', 'batch_size', 'num_towers']


def _text(tag, content):
    """The tf.Summary that shows `content`, Markdown, in TensorBoard's tab Text."""
    metadata = tf.SummaryMetadata(plugin_data=tf.SummaryMetadata.PluginData(plugin_name='text'))
    return tf.Summary(
        value=[
            tf.Summary.Value(
                tag=tag, metadata=metadata, tensor=tf.make_tensor_proto(content.encode())
            )
        ]
    )


def plan(lines):
    """The tf.Summary of the lines that a trainer prints before it starts; long ones are wrapped, or
    one would have to scroll."""
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(
            line,
            _PLAN_WIDTH,
            subsequent_indent='    ',
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    # code in Markdown: as it is, whatever is in a path
    return _text('plan', ''.join('    %s\n' % part for part in wrapped))


def started(record):
    """The tf.Summaries of a run that starts.

    Args:
      record: a dict with the fields of HParams, and what is in _FURTHER; see RunDirectory.
    """
    used = _used(record)
    table = ['| hyperparameter | value |', '|---|---|'] + [
        '| %s | %s |' % pair for pair in used.items()
    ]
    # An infinite number is no JSON: the tab would stay empty.
    finite = {
        name: value
        for name, value in used.items()
        if isinstance(value, str) or math.isfinite(value)
    }
    return [
        _text(tags.HYPERPARAMETERS, '\n'.join(table)),
        _columns(),
        _parsed(summary.session_start_pb(finite)),
    ]


def ended():
    """The tf.Summary of a run that has come to its end."""
    return _parsed(summary.session_end_pb(api_pb2.STATUS_SUCCESS))


def _used(record):
    """What is in the record and has an effect, by name."""
    hparams = HParams(*(record[name] for name in HParams._fields))
    return {
        name: record[name] for name in list(HParams._fields) + _FURTHER if hparams.has_effect(name)
    }


def _columns():
    """Of the table: all that any run can have, the precision, and how far the run has come."""
    hparams = []
    for name in sorted(list(HParams._fields) + _FURTHER, key=lambda name: name not in _FIRST):
        # by which newer versions sort
        column = {'name': name, 'type': 'DATA_TYPE_FLOAT64', 'differs': name in _FIRST}
        if name in _CHOICES:
            column.update(type='DATA_TYPE_STRING', domainDiscrete=_CHOICES[name])
        hparams.append(
            json_format.ParseDict(column, api_pb2.HParamInfo(), ignore_unknown_fields=True)
        )
    metrics = [
        api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in (tags.PRECISION, tags.EPOCH)
    ]
    return _parsed(summary.experiment_pb(hparams, metrics, time_created_secs=0))


def _parsed(made):
    """TensorBoard's own class of summaries may be another one."""
    return tf.Summary.FromString(made.SerializeToString())
