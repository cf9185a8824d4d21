"""TensorBoard summaries of a run and of an evaluation: Custom Scalars, HParams, Text.

The tab HParams compares the runs in one directory. Each run writes the columns of the table, its
hyperparameters and its end; see tensorboard.plugins.hparams.summary. All runs write the same
columns, because TensorBoard reads the columns of only one run.
"""

import math
import struct
import textwrap

from google.protobuf import json_format
from tensorboard.plugins.custom_scalar import layout_pb2, summary as layout_summary
from tensorboard.plugins.hparams import api_pb2, summary as hparams_summary
import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.config import HPARAMS
from cifar10.errors import UserError
from cifar10.report import text_report

PRECISION = 'Precision @ 1'
TOTAL_LOSS = 'total_loss'
AVERAGE_LOSS = 'total_loss/average'
CROSS_ENTROPY = 'losses/cross_entropy'
LEARNING_RATE = 'learning_rate'
EPOCH = 'epoch'
EXAMPLES_PER_SEC = 'examples_per_sec'
SEC_PER_STEP = 'sec_per_step'
HYPERPARAMETERS = 'hyperparameters'  # a text; the other tags are scalars

_CHARTS = [  # title, regular expressions for the tags
    ('Precision of the moving averages', [PRECISION]),
    ('Total loss', [TOTAL_LOSS]),
    # training with label smoothing has smoothed_cross_entropy
    ('Cross entropy', [CROSS_ENTROPY, 'losses/smoothed_cross_entropy']),
    ('Learning rate', [LEARNING_RATE]),
    ('Speed, examples per second', [EXAMPLES_PER_SEC]),
    ('Fill of the queues', ['shuffle_queue/fill', 'prefetch_queue/fill']),
]
# The tab HParams shows these columns by default.
_DISPLAYED_HPARAMS = ['network', 'recipe', 'optimizer', 'initial_learning_rate', 'batch_size']
_COLUMNS = sorted(
    ['network', *HPARAMS, 'batches_per_step', 'num_examples'],
    key=lambda name: name not in _DISPLAYED_HPARAMS,
)


def _to_tf_summary(summary):
    """Convert TensorBoard's own Summary class to tf.Summary."""
    return tf.Summary.FromString(summary.SerializeToString())


def _text_summary(tag, content):
    """Return a tf.Summary of Markdown for the tab Text."""
    summary = tf.Summary()
    value = summary.value.add(tag=tag, tensor=tf.make_tensor_proto(content.encode()))
    value.metadata.plugin_data.plugin_name = 'text'
    return summary


def custom_scalars_summary():
    """Return the layout of the tab Custom Scalars, which all runs share, as a tf.Summary."""
    charts = [
        layout_pb2.Chart(
            title=title, multiline=layout_pb2.MultilineChartContent(tag=[tag + '$' for tag in tags])
        )
        for title, tags in _CHARTS
    ]
    category = layout_pb2.Category(title='The run at a glance', chart=charts)
    return _to_tf_summary(layout_summary.pb(layout_pb2.Layout(category=[category])))


def write(summary_writer, values, step):
    """Write tf.Summaries of a step to the event file at once, so that a kill does not lose them.

    Args:
      summary_writer: a tf.summary.FileWriter, which writes in another thread.
      values: a list of tf.Summary.
      step: the global step.

    Raises:
      UserError: the directory is full or not writable. TensorFlow 1.15 does not notice it.
    """
    try:
        for summary in values:
            summary_writer.add_summary(summary, step)
        summary_writer.flush()
    except (RuntimeError, tf.errors.OpError) as error:
        raise UserError(
            f'Cannot write summaries ({errors.reason(error)}): '
            'make room there, or give another directory'
        )


def _plan_summary(lines):
    """Return the lines of the plan as a tf.Summary, with long lines wrapped."""
    # Markdown shows indented lines as code, so characters in paths are not markup.
    wrapper = textwrap.TextWrapper(124, '    ', '        ')
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return _text_summary('plan', '\n'.join(map(wrapper.fill, lines)))


def run_start_summaries(plan, record):
    """Return the tf.Summaries of the start of a run.

    Args:
      plan: the lines of the plan, or None.
      record: a RunRecord.
    """
    values = record.flat()
    used = {
        name: values[name]
        for name in _COLUMNS
        if name not in HPARAMS or record.hparams.has_effect(name)
    }
    table = text_report.markdown_table(
        ['hyperparameter', 'value'], [[name, str(value)] for name, value in used.items()]
    )
    # JSON has no infinity; with it, the tab would be empty.
    finite = {name: value for name, value in used.items() if value != math.inf}
    return ([_plan_summary(plan)] if plan else []) + [
        custom_scalars_summary(),
        _text_summary(HYPERPARAMETERS, table),
        _columns(),
        _to_tf_summary(hparams_summary.session_start_pb(finite)),
    ]


def run_end_summary():
    """Return the tf.Summary of the end of a run."""
    return _to_tf_summary(hparams_summary.session_end_pb(api_pb2.STATUS_SUCCESS))


def _columns():
    """Return the columns of the tab HParams as a tf.Summary."""
    hparams = []
    for name in _COLUMNS:
        choices = HPARAMS[name].metadata['choices'] if name in HPARAMS else None
        kind = 'DATA_TYPE_STRING' if choices or name == 'network' else 'DATA_TYPE_FLOAT64'
        # Newer versions of TensorBoard sort by `differs`.
        column = {'name': name, 'type': kind, 'differs': name in _DISPLAYED_HPARAMS}
        if choices:
            column['domainDiscrete'] = choices
        hparams.append(
            json_format.ParseDict(column, api_pb2.HParamInfo(), ignore_unknown_fields=True)
        )
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in (PRECISION, EPOCH)]
    return _to_tf_summary(hparams_summary.experiment_pb(hparams, metrics, time_created_secs=0))


def evaluation_summary(result, top_k):
    """Return a tf.Summary of metrics, losses, the table of classes and (if possible) figures."""
    from cifar10.report import figures  # not needed in the trainer

    metrics = result.metrics
    values = {
        PRECISION: metrics.accuracy,
        'calibration_error': metrics.calibration().expected_calibration_error,
        **result.losses,
    }
    if top_k:
        values[f'Precision @ {top_k}'] = metrics.precision_at_k(top_k)
    # indented as code: a class name may contain Markdown
    table = textwrap.indent(text_report.classification_report(metrics, result.class_names), '    ')
    summary = _text_summary('classes/text_summary', table)
    for tag, value in values.items():
        summary.value.add(tag=tag, simple_value=value)
    for tag, figure in figures.draw(result).items():
        png = figures.image_bytes(figure, 'png')
        width, height = struct.unpack('>II', png[16:24])  # PNG header
        image = tf.Summary.Image(height=height, width=width, encoded_image_string=png)
        summary.value.add(tag=tag, image=image)
    return summary
