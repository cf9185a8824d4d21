"""Following a run: its checkpoints as they appear, to the end of the run."""

import os
import time

from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files, run_directory
from cifar10.system import directories

_POLL_SECS = 2


def new_checkpoints(checkpoint_dir, min_interval_secs=300, timeout_secs=None):
    """Yield the newest Checkpoint, at most one every `min_interval_secs` seconds, and the last one
    of the run in any case.

    Looks every two seconds. Ends when the run has ended, or after `timeout_secs` seconds without a
    new checkpoint; if that is None and the run has no end, never. tf.train.checkpoints_iterator
    follows the list alone: it would miss a checkpoint that is saved again under the same name, and
    one that is intact while the latest is damaged.

    Raises:
      UserError: there are checkpoints, but no intact one; or the directory is gone, in which there
        was one; or none has come.
    """
    found = seen = last = None  # what is to be used; the same, and what was, at the last reading
    found_time = due_time = time.monotonic()
    if not checkpoint_files.fingerprint(checkpoint_dir):
        print('Waiting for a checkpoint in %s' % checkpoint_dir)
    while True:
        # in this order, or the last checkpoint could come in between
        has_ended = run_directory.has_ended(checkpoint_dir)
        fingerprint, now = checkpoint_files.fingerprint(checkpoint_dir), time.monotonic()
        if fingerprint != found:
            found, found_time = fingerprint, now
        waited = now - found_time
        is_over = timeout_secs is not None and waited >= timeout_secs
        if found != seen and (now >= due_time or has_ended or is_over):
            seen, ckpt = found, checkpoint.read_latest(checkpoint_dir)
            used = ckpt and (ckpt.path, checkpoint_files.modification_time(ckpt.path))
            if used and used != last:  # The newest may be damaged, and the one before it known.
                last, due_time = used, now + min_interval_secs
                yield ckpt
                continue
        if last and not os.path.isdir(checkpoint_dir):
            time.sleep(1)  # a trainer with --fresh moves it aside and makes it again
            directories.check_exists(
                checkpoint_dir, 'it has been moved or removed: put it back, and start again'
            )
        if has_ended and not directories.is_locked(checkpoint_dir):  # or it is just being resumed
            print('The run in %s has ended: this was its last checkpoint' % checkpoint_dir)
            return
        if is_over and last is None:
            raise UserError(
                'No checkpoint was found in %s within %d seconds: train there first, or give a longer --timeout_secs'
                % (checkpoint_dir, timeout_secs)
            )
        if is_over:
            print('No new checkpoint in %s for %d seconds' % (checkpoint_dir, waited))
            return
        time.sleep(_POLL_SECS)
