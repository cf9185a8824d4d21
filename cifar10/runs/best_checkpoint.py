"""The checkpoint of the best precision, kept beside the latest ones, which a saver deletes one
after the other."""

import os
import re

import tensorflow.compat.v1 as tf

from cifar10 import errors
from cifar10.errors import UserError
from cifar10.runs import checkpoint_files

PREFIX = 'best.ckpt'
_FILE = re.compile(r'(%s-\d+)\.(index|data-\d+-of-\d+)(\.tempstate\d+)?' % re.escape(PREFIX))


def keep(run, evaluated, precision):
    """Keeps a checkpoint in place of the best one so far, if its precision is greater; the run's
    record names it.

    Whenever the process is killed, the record names one that is complete.

    Args:
      run: a RunDirectory.
      evaluated: the Checkpoint, with the very values that have been evaluated.
      precision: the share of the examples that are classified correctly.

    Raises:
      UserError: it cannot be saved; the best one so far is intact.
    """
    best = run.record.get('best')
    if best and precision <= best['precision']:
        return
    name = '%s-%d' % (PREFIX, evaluated.step)
    path = os.path.join(run.path, name)
    try:
        # a run that was killed has come to this step again: it is going to be overwritten
        if best and best['checkpoint'] == name:
            run.record['best'] = best = None
            run.write_record()
        _write(path, evaluated.values)
        run.record['best'] = {'checkpoint': name, 'precision': precision}
        run.write_record()
    except (tf.errors.OpError, OSError, UserError) as error:
        run.record['best'] = best
        _remove_others(run.path, best['checkpoint'] if best else None)
        raise UserError(
            'Cannot keep the best checkpoint (%s): make room for %s' % (errors.reason(error), path)
        )
    _remove_others(run.path, name)
    print('Best so far: precision @ 1 = %.3f, kept as %s' % (precision, path), flush=True)


def _write(path, values):
    """Writes a checkpoint with the operation that a tf.train.Saver uses; it needs no variables."""
    names = sorted(values)
    with tf.Graph().as_default(), tf.device('/cpu:0'), tf.Session(
        config=tf.ConfigProto(device_count={'GPU': 0})
    ) as session:
        feeds = [tf.placeholder(values[name].dtype) for name in names]
        save = tf.raw_ops.SaveV2(
            prefix=path, tensor_names=names, shape_and_slices=[''] * len(names), tensors=feeds
        )
        session.run(save, dict(zip(feeds, [values[name] for name in names])))


def _remove_others(directory, kept):
    for name in checkpoint_files.names(directory):
        match = _FILE.fullmatch(name)
        if match and (match.group(1) != kept or match.group(3)):
            checkpoint_files.remove(os.path.join(directory, name))
