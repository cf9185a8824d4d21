"""The dashboard of a run: the tab 'Custom Scalars' of TensorBoard, with the curves to look at
first, of training and evaluation."""

from tensorboard.plugins.custom_scalar import layout_pb2, summary
import tensorflow.compat.v1 as tf

from cifar10.report import tags

_VIEWS = r'(, \d+ views)?'  # see tags.with_views
_CHARTS = [  # title, and regular expressions for the tags of its curves
    ('Precision of the moving averages', [tags.PRECISION + _VIEWS]),
    ('Total loss', [tags.TOTAL_LOSS + _VIEWS]),
    ('Cross entropy', [tags.CROSS_ENTROPY + _VIEWS, tags.SMOOTHED_CROSS_ENTROPY]),
    ('Learning rate', [tags.LEARNING_RATE]),
    ('Speed, examples per second', [tags.EXAMPLES_PER_SEC]),
    ('Fill of the queues', [tags.SHUFFLE_QUEUE_FILL, tags.PREFETCH_QUEUE_FILL]),
]


def layout():
    """The tf.Summary that tells TensorBoard of the dashboard. Directories of several runs may hold
    it: equal charts are shown once."""
    charts = [
        layout_pb2.Chart(
            title=title,
            multiline=layout_pb2.MultilineChartContent(tag=[tag + '$' for tag in tags_of_chart]),
        )
        for title, tags_of_chart in _CHARTS
    ]
    category = layout_pb2.Category(title='The run at a glance', chart=charts)
    return tf.Summary.FromString(
        summary.pb(layout_pb2.Layout(category=[category])).SerializeToString()
    )
