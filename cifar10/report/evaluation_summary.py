"""What TensorBoard shows of an evaluation."""

from tensorboard.plugins.text import summary as text_summary
import tensorflow.compat.v1 as tf

from cifar10.report import drawing, tags, text_report


def summary(result, top_k=None):
    """The tf.Summary of an evaluation: precision, losses, calibration, the classes as text, and
    pictures if Pillow is there.

    Args:
      result: an evaluation.Result.
      top_k: for precision @ k as well; None for precision @ 1 alone.
    """
    scores = result.scores
    values = dict(result.losses)
    values[tags.PRECISION] = scores.precision
    values[tags.CALIBRATION_ERROR] = scores.calibration().expected_error
    if top_k:
        values[tags.precision_at(top_k)] = scores.num_correct_at(top_k) / scores.num_examples

    def tagged(tag):
        return tags.with_views(tag, result.num_views)

    shown = tf.Summary(
        value=[
            tf.Summary.Value(tag=tagged(tag), simple_value=value)
            for tag, value in sorted(values.items())
        ]
    )
    for tag, picture in _pictures(result):
        shown.value.add(
            tag=tagged(tag),
            image=tf.Summary.Image(
                height=picture.shape[0],
                width=picture.shape[1],
                colorspace=3,
                encoded_image_string=drawing.encoded(picture),
            ),
        )
    text = text_summary.pb(
        tagged('classes'), text_report.by_class_markdown(scores, result.class_names)
    )
    shown.MergeFromString(text.SerializeToString())
    return shown


def _pictures(result):
    """Yields pairs of tag and picture, uint8 [height, width, 3]."""
    if not drawing.is_available():
        return
    scores, class_names = result.scores, result.class_names
    yield 'reliability', drawing.reliability(scores.calibration())
    yield 'mistakes', drawing.mistakes(result.mistakes, class_names)
    if scores.num_classes <= drawing.MAX_CLASSES:
        yield 'confusion_matrix', drawing.confusion(scores.confusion(), class_names)
