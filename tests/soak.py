#!/usr/bin/env python3
"""Trains, evaluates and resumes on one directory for hours, while faults of every kind happen, and checks what was promised.

It is no test of pytest:

  python tests/soak.py --minutes=60

See tests/helpers/soaking.py for the promises and tests/helpers/soak_faults.py for the faults.
"""
import argparse
import collections
import glob
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.helpers import data_sets, soak_faults, soaking  # noqa: E402
from tests.helpers.soaking import Process, Violation  # noqa: E402

DISK_BYTES = 256 * 2 ** 20
MAX_RUN_BYTES = 128 * 2 ** 20  # a longer run is moved aside, and a new one begins
NEIGHBOURS = ['run2/model.ckpt-5.index', 'run2/checkpoint', 'run.bak/run.json', 'run.bak/model.ckpt-30.data-00000-of-00001', 'rum/a',
              'run[1]/a', 'model.ckpt-5.index', 'checkpoint', 'run.json', 'run.json.new', 'run.new', 'events.out.tfevents.1.a']
SCRIPTS = [['cifar10_train'], ['cifar10_multi_gpu_train', '--num_gpus=2']]


class Soak:
    """The run, the trainer that works on it, and what was done to both."""

    def __init__(self, base, rng, small_disk):
        """Makes the directories.

        Args:
          base: an empty directory.
          rng: a random.Random.
          small_disk: whether base/disk is a file system of its own, which can be filled.
        """
        self.base, self.rng, self.small_disk = base, rng, small_disk
        self.disk, self.run = os.path.join(base, 'disk'), os.path.join(base, 'disk', 'run')
        self.data = data_sets.write(os.path.join(base, 'data'))
        shutil.copytree(self.data, os.path.join(base, 'good data'))
        for name in NEIGHBOURS:
            path = os.path.join(self.disk, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as opened:
                opened.write('what nobody may touch')
        os.mkdir(os.path.join(base, 'output'))
        self._untouched = self._neighbours()
        self._numbers = itertools.count()
        self._processes = []
        self.record = soaking.Record(self.run)
        self.trainer, self._first_step = None, 0
        self.last_step = 0  # that the last trainer has logged
        self.leftovers = []  # files that the next start removes
        self._pending = []  # faults since the trainer was last seen to train
        self.precisions = {}  # of the copy of an early checkpoint
        self.injected, self.survived, self.totals = collections.Counter(), collections.Counter(), collections.Counter()

    def _neighbours(self):
        return soaking.fingerprint(self.disk, ('run', 'eval', 'filler')), soaking.fingerprint(self.data)

    def process(self, script, *args, stdout=None):
        """Starts a script."""
        self._processes = [process for process in self._processes if process.running()]
        self._processes.append(Process(os.path.join(self.base, 'output', '%05d' % next(self._numbers)), script, *args, stdout=stdout))
        return self._processes[-1]

    def trainer_args(self):
        """A trainer by chance, with its flags."""
        return self.rng.choice(SCRIPTS) + [
            '--dataset=synthetic', '--data_dir=' + self.data, '--train_dir=' + self.run, '--batch_size=8', '--log_frequency=5',
            '--initial_learning_rate=0.001', '--summary_steps=%d' % soaking.SUMMARY_STEPS, '--checkpoint_steps=30',
            '--max_to_keep=%d' % soaking.MAX_TO_KEEP]

    def start(self, *flags, stdout=None):
        """Starts a trainer, and returns it; `ended` must be called when it has ended."""
        self._expected = self.record.scan()
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
        if not self.trainer.running():
            self.trainer.end(line='no end at all')
        self._check_resumed()
        for path in self.leftovers:
            if os.path.exists(path):
                raise Violation('%s is still there after a start' % path)
        self.leftovers = []
        self.survived.update(self._pending)
        self._pending = []
        return self.trainer

    def _check_resumed(self):
        numbers = [int(step) for step in soaking.RESUMED.findall(self.trainer.stdout())]
        if soaking.STEP.search(self.trainer.stdout()) or numbers:
            if numbers != ([self._expected] if self._expected else []):
                raise Violation('%s resumed from step %s, although the newest intact checkpoint was that of step %s'
                                % (self.trainer, numbers or 'nothing', self._expected))
            self._first_step = self._expected or 0

    def ended(self, *statuses, line=None):
        """Waits for the end of the trainer, see Process.end; returns its status, which is 0 only if every step was saved."""
        trainer = self.trainer
        status = trainer.end(*statuses, line=line)
        self._check_resumed()
        self.trainer = None
        self.last_step = trainer.step()
        self.totals['steps trained'] += max(0, self.last_step - self._first_step)
        self.record.close(self.last_step)
        newest = self.record.scan()
        saved = [int(step) for step in soaking.SAVED.findall(trainer.stdout())]
        if saved and saved[-1] != newest or status == 0 and self.last_step and newest < self.last_step:
            raise Violation('%s ended with status %d at step %d, said that it saved %s, and the newest intact checkpoint is that of step %s'
                            % (trainer, status, self.last_step, saved, newest))
        return status

    def evaluation(self, directory, *flags):
        """Starts an evaluation of a directory; by default once, of its newest checkpoint."""
        self.totals['evaluations'] += not flags
        return self.process('cifar10_eval', '--dataset=synthetic', '--data_dir=' + self.data, '--checkpoint_dir=' + directory,
                            '--eval_dir=' + os.path.join(self.disk, 'eval'), *(flags or ['--run_once']))

    def precision(self, directory):
        """What the evaluation of a directory's newest checkpoint prints."""
        process = self.evaluation(directory)
        process.end(0)
        found = soaking.PRECISION.findall(process.stdout())
        if len(found) != 1:
            raise Violation('%s has printed no precision, or several' % process)
        return found[0]

    def stopped(self):
        """Ends the trainer, if there is one, by chance with a checkpoint or without."""
        if self.trainer is not None:
            number = self.rng.choice([signal.SIGKILL, signal.SIGTERM])
            self.training().send(number)
            self.ended(-signal.SIGKILL if number == signal.SIGKILL else 0)

    def new_run(self):
        """Forgets the run, which is no longer in its directory."""
        self.record = soaking.Record(self.run, self.record.checkpoints_read)
        self.last_step = self._first_step = 0
        self._expected = None

    def inject(self, name):
        """Lets a fault happen, and checks what must be true after it."""
        began = time.monotonic()
        self.injected[name] += 1
        self._pending.append(name)
        soak_faults.FAULTS[name][1](self)
        if self._neighbours() != self._untouched:
            raise Violation('Something outside the run has changed')
        if self.trainer is not None and not self.trainer.running():
            self.trainer.end(line='no end at all')
        if self.rng.random() < 0.3:
            self.check_curve()
        print('%s %-24s %5.1f s, step %d' % (time.strftime('%H:%M:%S'), name, time.monotonic() - began,
                                            self.trainer.step() if self.trainer else self.last_step), flush=True)
        if sum(map(os.path.getsize, glob.glob(os.path.join(self.run, '*')))) > MAX_RUN_BYTES:
            self.inject('a new run')

    def check_curve(self):
        """Checks the event files, see Record.check_curve."""
        self.record.check_curve((self.trainer.step() if self.trainer else self.last_step) - 1)
        self.totals['curves checked'] += 1

    def finish(self):
        """Ends the soak: the run must go on once more."""
        self.training().send(signal.SIGTERM)
        self.ended(0)
        self.check_curve()

    def kill_all(self):
        """Leaves no process behind."""
        for process in self._processes:
            process.kill()

    def report(self):
        """The table of what happened."""
        totals = dict(self.totals, **{'checkpoints read': self.record.checkpoints_read})
        return '\n'.join(['| fault | injected | survived |', '|---|---|---|'] + [
            '| %s | %d | %d |' % (name, self.injected[name], self.survived[name]) for name in soak_faults.FAULTS if self.injected[name]] + [
            '', 'Together: %d faults; ' % sum(self.injected.values()) + ', '.join(
                '%s: %d' % (name, totals[name]) for name in sorted(totals))])


def _soak(soak, names, minutes):
    """Injects faults until the time is over; returns the exit status."""
    weights = [soak_faults.FAULTS[name][0] for name in names]
    end = time.monotonic() + 60 * minutes
    try:
        while time.monotonic() < end:
            soak.inject(soak.rng.choices(names, weights)[0])
        soak.finish()
    except Violation as violation:
        print('VIOLATED: %s' % violation, flush=True)
        return 1
    except KeyboardInterrupt:
        print('Interrupted', flush=True)
    return 0


def _private_mounts():
    """Starts this program again where its mounts are its own and end with it; returns whether it runs there."""
    if os.environ.get('SOAK_MOUNTS') == str(os.getpid()):
        return True
    usable = hasattr(os, 'geteuid') and os.geteuid() == 0 and shutil.which('unshare')
    if usable and subprocess.call(['unshare', '-m', 'true'], stderr=subprocess.DEVNULL) == 0:
        os.environ['SOAK_MOUNTS'] = str(os.getpid())
        os.execvp('unshare', ['unshare', '-m', sys.executable] + sys.argv)
    return False


def main():
    """Parses the command line, makes the place, and soaks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(10 ** 6))
    parser.add_argument('--faults', help='only these, with commas between them: %s' % ', '.join(soak_faults.FAULTS))
    args = parser.parse_args()
    private = _private_mounts()
    base = tempfile.mkdtemp(prefix='soak-')
    disk = os.path.join(base, 'disk')
    os.mkdir(disk)
    small_disk = private and subprocess.call(['mount', '-t', 'tmpfs', '-o', 'size=%d' % DISK_BYTES, 'soak', disk]) == 0
    names = args.faults.split(',') if args.faults else list(soak_faults.FAULTS)
    if not small_disk:
        print('The disk is not filled: that needs Linux, root, and the right to mount', flush=True)
        names = [name for name in names if name not in soak_faults.NEED_SMALL_DISK]
    print('--seed=%d, in %s' % (args.seed, base), flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    soak, status = Soak(base, random.Random(args.seed), small_disk), 1
    try:
        status = _soak(soak, names, args.minutes)
    finally:
        soak.kill_all()
        print(soak.report(), flush=True)
        if status:
            shutil.copytree(disk, os.path.join(base, 'kept'), symlinks=True)
            print('Seed %d; the run is kept in %s, the output of the processes in %s'
                  % (args.seed, os.path.join(base, 'kept', 'run'), os.path.join(base, 'output')), flush=True)
        if small_disk:
            subprocess.check_call(['umount', disk])
        if not status:
            shutil.rmtree(base)
    return status


if __name__ == '__main__':
    sys.exit(main())
