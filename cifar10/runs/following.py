"""Following a run: its checkpoints as they appear, to the end of the run."""

import os
import time

from cifar10 import directories
from cifar10.errors import UserError
from cifar10.runs import checkpoint, checkpoint_files, run_directory

INTERVAL_SECS = 300  # from one evaluation to the next, at least
_LOOK_SECS = 2


def new_checkpoints(checkpoint_dir, interval_secs, timeout_secs=None):
    """Yields the newest Checkpoint, at most one every `interval_secs` seconds, and the last one of
    the run in any case.

    Looks every two seconds. Ends when the run has ended, or after `timeout_secs` seconds without a
    new checkpoint; if that is None and the run has no end, never.

    Raises:
      UserError: there are checkpoints, but no intact one; or the directory is gone, in which there
        was one; or none has come.
    """
    found = read = last = None  # the first two are stamps
    found_time = due_time = time.monotonic()
    print_once = iter(['Waiting for a checkpoint in %s' % checkpoint_dir])
    while True:
        # in this order, or the last checkpoint could come in between
        has_ended = run_directory.has_ended(checkpoint_dir)
        stamp, now = checkpoint_files.stamp(checkpoint_dir), time.monotonic()
        if stamp != found:
            found, found_time = stamp, now
        is_over = timeout_secs is not None and now - found_time >= timeout_secs
        if stamp != read and (now >= due_time or has_ended or is_over):
            restored, read = checkpoint.read_latest(checkpoint_dir), stamp
            # The newest may be damaged, and the one before it known.
            if restored and (restored.path, checkpoint_files.saved_time(restored.path)) != last:
                last = restored.path, checkpoint_files.saved_time(restored.path)
                due_time = now + interval_secs
                yield restored
                continue
        if last is None:
            for line in print_once:
                print(line, flush=True)
        else:
            _check_present(checkpoint_dir)
        if has_ended and not directories.is_locked(checkpoint_dir):  # or it is just being resumed
            print(
                'The run in %s has ended: this was its last checkpoint' % checkpoint_dir, flush=True
            )
            return
        if is_over and last is None:
            raise UserError(
                'No checkpoint was found in %s within %d seconds: train there first, or give a longer --timeout_secs'
                % (checkpoint_dir, now - found_time)
            )
        if is_over:
            print(
                'No new checkpoint in %s for %d seconds' % (checkpoint_dir, now - found_time),
                flush=True,
            )
            return
        time.sleep(
            _LOOK_SECS if timeout_secs is None else min(_LOOK_SECS, found_time + timeout_secs - now)
        )


def _check_present(checkpoint_dir):
    if not os.path.isdir(checkpoint_dir):
        time.sleep(1)  # a trainer with --fresh moves it aside and makes it again
        if not os.path.isdir(checkpoint_dir):
            raise UserError(
                '%s has been moved or removed: put it back, or give another directory, and start again'
                % checkpoint_dir
            )
