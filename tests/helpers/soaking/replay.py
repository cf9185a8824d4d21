"""Deterministic runs under soak: killed at random moments, compared with one that is not."""

import collections
import os
import shutil
import signal

from cifar10.report import tensorboard
from cifar10.runs import checkpoint
from tests.helpers import data_sets, events
from tests.helpers.soaking.process import STEP, Process, Violation

LAST_STEP = 1200  # about ten seconds
LONGEST_LIFE_SECS = 12  # of a trainer that is stopped, per tower; it trains after about four
SIGNALS = [signal.SIGKILL] * 3 + [signal.SIGTERM, signal.SIGINT]


class ReplaySoak:
    """Soak of deterministic runs in a directory; `num_gpus` is 1 or 2."""

    def __init__(self, base, rng, num_gpus):
        self._base, self._rng, self._num_gpus = base, rng, num_gpus
        self._data = data_sets.write(os.path.join(base, 'data'))
        self._script = ['cifar10_train'] if num_gpus == 1 else ['cifar10_multi_gpu_train']
        self._flags = [] if num_gpus == 1 else [f'--num_gpus={num_gpus}']
        self._num_processes = 0
        self.trainer = None
        self.counts = collections.Counter()

    def _start(self, train_dir, seed):
        self._num_processes += 1
        self.trainer = Process(
            os.path.join(self._base, f'{self._num_processes:05}'),
            *self._script,
            *self._flags,
            '--dataset=synthetic',
            '--data_dir=' + self._data,
            '--train_dir=' + train_dir,
            '--deterministic',
            f'--seed={seed}',
            f'--max_steps={LAST_STEP}',
            '--batch_size=8',
            '--initial_learning_rate=0.001',
            '--log_frequency=5',
            '--save_summaries_steps=20',
            '--save_checkpoint_steps=50',
            '--eval_every=200',
        )
        return self.trainer

    def run(self):
        """Compare a run that is stopped at random moments with the same run without a stop.

        Raises:
          Violation: they differ.
        """
        seed = self._rng.randrange(10**6)
        whole, stopped = (os.path.join(self._base, name) for name in ('whole', 'stopped'))
        self._start(whole, seed).end(0)
        log_lines = STEP.findall(self.trainer.stdout())
        wanted, found_lines, num_kills = _outputs(whole), [], 0
        while True:
            trainer = self._start(stopped, seed)
            if trainer.ends_within(self._rng.uniform(0, LONGEST_LIFE_SECS * self._num_gpus)):
                break
            number = self._rng.choice(SIGNALS)
            trainer.wait_until_imported()
            trainer.send(number)
            trainer.end(-number, 0, 128 + number)
            found_lines += STEP.findall(trainer.stdout())
            self.counts[number.name] += 1
            num_kills += number == signal.SIGKILL
        trainer.end(0)
        found_lines += STEP.findall(trainer.stdout())
        self._compare(wanted, _outputs(stopped))
        twice = [step for step, count in collections.Counter(found_lines).items() if count > 1]
        missing = sorted({*log_lines} - {*found_lines})
        if twice or len(missing) > num_kills:  # A kill can prevent a line that is recorded.
            raise Violation(f'Log lines that appear twice: {twice}; that are missing: {missing}')
        self.counts['runs'] += 1
        self.counts['log lines that a kill has prevented'] += len(missing)
        for directory in (whole, stopped):
            shutil.rmtree(directory)

    def _compare(self, wanted, found):
        """Raise Violation if a bit of a variable, a loss or a precision differs."""
        for kind, values in wanted.items():
            differing = [key for key in values if found[kind].get(key) != values[key]]
            if differing:
                raise Violation(f'{kind} differ: {differing}')
            self.counts[f'{kind} compared'] += len(values)


def _outputs(directory):
    """Return the last variables by name, and losses and precisions by step.

    Raises:
      Violation: a repeated step has another value.
    """
    last = checkpoint.read_latest(directory)
    found = {'variables': {name: value.tobytes() for name, value in last.values.items()}}
    for kind, tag in [('losses', tensorboard.TOTAL_LOSS), ('precisions', tensorboard.PRECISION)]:
        curve = [(step, value) for step, name, value in events.scalars(directory) if name == tag]
        found[kind] = dict(curve)
        if len(found[kind]) < len(set(curve)):
            raise Violation(f'{kind} of repeated steps differ')
    return found
