"""What a run under soak has on disk, read independently of the package, and compared with what was
there before."""

import contextlib
import glob
import hashlib
import logging
import os

from tensorboard.backend.event_processing import event_accumulator
import tensorflow.compat.v1 as tf

from tests.helpers.soaking.process import Violation

MAX_TO_KEEP = 3
SUMMARY_STEPS = 20
logging.getLogger('tensorboard').setLevel(logging.ERROR)  # or it tells of every start of a trainer


def intact_checkpoints(directory):
    """The (step, time) of each checkpoint in `directory` of which every value can be read."""
    found = set()
    for index in glob.glob(os.path.join(glob.escape(directory), 'model.ckpt-*.index')):
        # TensorFlow's errors and others, IndexError among them
        with contextlib.suppress(Exception):
            saved = os.stat(index).st_mtime_ns
            reader = tf.train.load_checkpoint(index[: -len('.index')])
            values = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
            found.add((int(values['global_step']), saved))
    return found


def fingerprint(directory, left_out=()):
    """The content and the times of all that is in `directory`, but for the names `left_out`
    there."""
    found = {}
    for folder, folders, names in os.walk(directory):
        if folder == directory:
            folders[:], names = [set(entries) - set(left_out) for entries in (folders, names)]
        found[folder] = None
        for path in [os.path.join(folder, name) for name in names]:
            with open(path, 'rb') as opened:
                found[path] = hashlib.sha256(opened.read()).hexdigest(), os.stat(path).st_mtime_ns
    return found


def curve(path):
    """The steps of `total_loss` in an event file, or in all those of a directory, as TensorBoard
    reads them."""
    accumulator = event_accumulator.EventAccumulator(
        path, {event_accumulator.SCALARS: 0}, purge_orphaned_data=True
    )
    accumulator.Reload()
    return (
        [event.step for event in accumulator.Scalars('total_loss')]
        if 'total_loss' in accumulator.Tags()['scalars']
        else []
    )


class Record:
    """What is known of the run."""

    def __init__(self, directory):
        self._directory = directory
        # (step, time) of the checkpoints that were seen intact, and must not vanish
        self.intact = set()
        self._damaged = set()  # of those that were damaged on purpose
        self.forgiven = set()  # steps whose summaries may be missing
        # the step since which the summaries of the trainer that works now may get lost
        self.losing_since = None

    def scan(self):
        """Reads all checkpoints; no trainer may be working. Returns the step of the newest intact
        one, or None.

        Raises:
          Violation: one has vanished, not because of --max_to_keep, or is damaged, not on purpose.
        """
        found = intact_checkpoints(self._directory)
        for step, saved in self.intact - found:
            later = [other for other in found | self._damaged if other[1] > saved]
            if len(later) < MAX_TO_KEEP:
                raise Violation(
                    'The checkpoint of step %d has vanished or is damaged; there are those of steps %s'
                    % (step, sorted(other for other, _ in found))
                )
        self.intact = found
        return max(found)[0] if found else None

    def damaged(self, step_and_time):
        """Notes that a checkpoint was damaged on purpose."""
        self._damaged.add(step_and_time)
        self.intact.discard(step_and_time)

    def stop_losing(self, step):
        """Notes that from about this step on summaries are no longer lost."""
        if self.losing_since is not None:
            self.forgiven.update(range(self.losing_since, step + 2 * SUMMARY_STEPS))
            self.losing_since = None

    def check_curve(self, last):
        """Reads the event files.

        Args:
          last: the step up to which there must be summaries.

        Raises:
          Violation: steps come twice, or are missing.
        """
        steps = curve(self._directory) if os.path.isdir(self._directory) else []
        if steps != sorted(set(steps)):
            raise Violation(
                'The curve overlaps at the steps %s'
                % [b for a, b in zip(steps, steps[1:]) if b <= a]
            )
        if self.losing_since is not None:
            last = min(last, self.losing_since - 1)
        wanted = set(range(SUMMARY_STEPS, last + 1, SUMMARY_STEPS))
        missing, strange = (
            sorted(wanted - set(steps) - self.forgiven),
            [step for step in steps if step % SUMMARY_STEPS],
        )
        if missing or strange:
            raise Violation(
                'The curve up to step %d lacks the steps %s; it should not have the steps %s'
                % (last, missing, strange)
            )
