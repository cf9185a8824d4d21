"""The tags that more than one place knows: those that write them, the dashboard, and who compares
runs."""

PRECISION = 'Precision @ 1'
TOTAL_LOSS = 'total_loss'
CROSS_ENTROPY = 'losses/cross_entropy'
SMOOTHED_CROSS_ENTROPY = 'losses/smoothed_cross_entropy'  # in training, with label smoothing
CALIBRATION_ERROR = 'calibration_error'
LEARNING_RATE = 'learning_rate'
EPOCH = 'epoch'
EXAMPLES_PER_SEC = 'examples_per_sec'
SEC_PER_BATCH = 'sec_per_batch'
SHUFFLE_QUEUE_FILL = 'shuffle_queue/fill'
PREFETCH_QUEUE_FILL = 'prefetch_queue/fill'
HYPERPARAMETERS = 'hyperparameters'  # a text, the others are scalars


def precision_at(k):
    """The tag of precision @ k."""
    return 'Precision @ %d' % k


def with_views(tag, num_views):
    """The tag of an evaluation with this many views, so that several evaluations may share a
    directory."""
    return tag if num_views == 1 else '%s, %d views' % (tag, num_views)
