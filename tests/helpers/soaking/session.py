"""The run under soak, the trainer that works on it, and what was done to both."""

import collections
import contextlib
import glob
import itertools
import os
import shutil
import signal
import time

from tests.helpers import data_sets
from tests.helpers.soaking import process, record
from tests.helpers.soaking.process import Violation

CHECKPOINT_STEPS = 30
MAX_RUN_BYTES = 128 * 2**20  # a longer run is moved aside, and a new one begins
NEIGHBOURS = [
    'run2/model.ckpt-5.index',
    'run2/checkpoint',
    'run.bak/run.json',
    'run.bak/model.ckpt-30.data-00000-of-00001',
    'rum/a',
    'run[1]/a',
    'model.ckpt-5.index',
    'checkpoint',
    'run.json',
    'run.json.new',
    'run.new',
    'events.out.tfevents.1.a',
]
TRAINERS = [['cifar10_train'], ['cifar10_multi_gpu_train', '--num_gpus=2']]


class Soak:
    """What the faults work on."""

    def __init__(self, base, rng):
        """Makes the directories.

        Args:
          base: a directory in which disk/ is an empty one.
          rng: a random.Random.
        """
        self.base, self.rng = base, rng
        self.disk, self.run = os.path.join(base, 'disk'), os.path.join(base, 'disk', 'run')
        self.data = data_sets.write(os.path.join(base, 'data'))
        shutil.copytree(self.data, os.path.join(base, 'good data'))
        for name in NEIGHBOURS:
            path = os.path.join(self.disk, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as opened:
                opened.write('nobody may touch it')
        os.mkdir(os.path.join(base, 'output'))
        self._untouched = self._surroundings()
        self._numbers, self._processes = itertools.count(), []
        self.record = record.Record(self.run)
        self.trainer, self._expected, self._first_step = None, None, 0
        self.last_step = 0  # that the last trainer has logged
        self.leftovers = set()  # files that the next start removes
        self.precisions = set()  # of the copy of an early checkpoint
        self._pending = []  # faults since a trainer was last seen to train
        self.injected, self.survived, self.totals = (
            collections.Counter(),
            collections.Counter(),
            collections.Counter(),
        )

    def _surroundings(self):
        return record.fingerprint(self.disk, ('run', 'eval', 'filler')), record.fingerprint(
            self.data
        )

    def process(self, script, *args, stdout=None):
        """Starts a script."""
        self._processes = [started for started in self._processes if started.running()]
        output = os.path.join(self.base, 'output', '%05d' % next(self._numbers))
        self._processes.append(process.Process(output, script, *args, stdout=stdout))
        return self._processes[-1]

    def trainer_args(self):
        """A trainer by chance, with its flags."""
        return self.rng.choice(TRAINERS) + [
            '--dataset=synthetic',
            '--data_dir=' + self.data,
            '--train_dir=' + self.run,
            '--batch_size=8',
            '--log_frequency=5',
            '--initial_learning_rate=0.001',
            '--summary_steps=%d' % record.SUMMARY_STEPS,
            '--checkpoint_steps=%d' % CHECKPOINT_STEPS,
            '--max_to_keep=%d' % record.MAX_TO_KEEP,
        ]

    def scan(self):
        """The step of the newest intact checkpoint, or None; see Record.scan."""
        newest = self.record.scan()
        self.totals['checkpoints read'] += len(self.record.intact)
        return newest

    def start(self, *flags, stdout=None):
        """Starts a trainer, and returns it; `ended` must be called when it has ended."""
        self._expected = self.scan()
        self.totals['starts'] += 1
        self.trainer = self.process(*self.trainer_args(), *flags, stdout=stdout)
        return self.trainer

    def training(self):
        """The trainer, which has logged a step; it is started if there is none.

        Raises:
          Violation: it does not start again, from the newest intact checkpoint.
        """
        if self.trainer is None:
            self.start()
        self.trainer.wait_for_step()
        self._check_running()
        self._check_resumed()
        for path in self.leftovers:
            if os.path.exists(path):
                raise Violation('%s is still there after a start' % path)
        self.leftovers.clear()
        self.survived.update(self._pending)
        self._pending.clear()
        return self.trainer

    def _check_running(self):
        if not self.trainer.running():
            self.trainer.end()  # which no status allows

    def _check_resumed(self):
        resumed = [int(step) for step in process.RESUMED.findall(self.trainer.stdout())]
        if (resumed or self.trainer.step()) and resumed != (
            [self._expected] if self._expected else []
        ):
            raise Violation(
                '%s resumed from step %s, although the newest intact checkpoint was that of step %s'
                % (self.trainer, resumed, self._expected)
            )
        self._first_step = resumed[0] if resumed else 0

    def ended(self, *statuses, line=None):
        """Waits for the end of the trainer and checks it, see Process.end; with status 0, each step
        must be saved."""
        status = self.trainer.end(*statuses, line=line)
        self._check_resumed()
        trainer, self.trainer = self.trainer, None
        self.last_step = trainer.step()
        self.totals['steps'] += max(0, self.last_step - self._first_step)
        self.record.stop_losing(self.last_step)
        self.leftovers.update(
            glob.glob(os.path.join(self.run, '*temp*'))
            + glob.glob(os.path.join(self.run, '*.tmp*'))
        )
        newest = self.scan()
        saved = [int(step) for step in process.SAVED.findall(trainer.stdout())]
        if saved and saved[-1] != newest or status == 0 and self.last_step > (newest or 0):
            raise Violation(
                '%s ended with status %d at step %d. It saved the step %s; the newest intact checkpoint is that of step %s'
                % (trainer, status, self.last_step, saved, newest)
            )
        return status

    def no_trainer(self):
        """Ends the trainer, if there is one, with a checkpoint or without."""
        if self.trainer is not None:
            number = self.rng.choice([signal.SIGKILL, signal.SIGTERM])
            self.training().send(number)
            self.ended(-number if number == signal.SIGKILL else 0)

    def evaluation(self, directory, *flags):
        """Starts an evaluation of a directory; without flags, once."""
        self.totals['evaluations'] += not flags
        return self.process(
            'cifar10_eval',
            '--dataset=synthetic',
            '--data_dir=' + self.data,
            '--checkpoint_dir=' + directory,
            '--eval_dir=' + os.path.join(self.disk, 'eval'),
            *(flags or ['--run_once']),
        )

    def precision(self, directory):
        """What an evaluation of the newest checkpoint in a directory prints."""
        evaluation = self.evaluation(directory)
        evaluation.end(0)
        found = process.PRECISION.findall(evaluation.stdout())
        if len(found) != 1:
            raise Violation('%s printed %d precisions' % (evaluation, len(found)))
        return found[0]

    def new_run(self):
        """Forgets the run, which is about to be moved out of its directory."""
        self.record = record.Record(self.run)
        self._expected, self._first_step, self.last_step = None, 0, 0

    def check_curve(self):
        """Checks the event files, see Record.check_curve."""
        self.totals['curves read'] += 1
        # The last line may have been logged before the summary of its step was written.
        self.record.check_curve((self.trainer.step() if self.trainer else self.last_step) - 1)

    def inject(self, name, fault):
        """Lets a fault happen, and checks what must be true whatever has happened; returns whether
        the run is too long now."""
        began = time.monotonic()
        happened = fault(self) is not False
        if self._surroundings() != self._untouched:
            raise Violation('Something outside the directory of the run has changed')
        if self.trainer:
            self._check_running()
        if self.rng.random() < 0.3:
            self.check_curve()
        if happened:
            self.injected[name] += 1
            self._pending.append(name)
            print(
                '%s %-24s %5.1f s, step %d'
                % (
                    time.strftime('%H:%M:%S'),
                    name,
                    time.monotonic() - began,
                    self.trainer.step() if self.trainer else self.last_step,
                ),
                flush=True,
            )
        return self._bytes() > MAX_RUN_BYTES

    def _bytes(self):
        """The size of all files of the run; some may vanish meanwhile."""
        total = 0
        for path in glob.glob(os.path.join(self.run, '*')):
            with contextlib.suppress(OSError):
                total += os.path.getsize(path)
        return total

    def finish(self):
        """Ends the soak: the run goes on once more, and ends."""
        self.training().send(signal.SIGTERM)
        self.ended(0)
        self.check_curve()

    def kill_all(self):
        """Leaves no process behind."""
        for started in self._processes:
            started.kill()

    def report(self):
        """A table of what happened."""
        return '\n'.join(
            ['| fault | injected | survived |', '|---|---|---|']
            + [
                '| %s | %d | %d |' % (name, count, self.survived[name])
                for name, count in sorted(self.injected.items())
            ]
            + [
                '',
                '%d faults; ' % sum(self.injected.values())
                + ', '.join(
                    '%s: %d' % (name, count) for name, count in sorted(self.totals.items())
                ),
            ]
        )
