"""The run under soak: its trainer, an independent reader of its files, checks after each fault."""

import collections
import contextlib
import glob
import hashlib
import logging
import os
import re
import shutil
import signal
import time

from tensorboard.backend.event_processing import event_accumulator
import tensorflow.compat.v1 as tf

from tests.helpers import data_sets
from tests.helpers.soaking.process import RESUMED, STEP, Process, Violation

MAX_TO_KEEP = 5  # that of the trainers
SUMMARY_STEPS = 20
CHECKPOINT_STEPS = 30
NEIGHBOURS = ['run2/model.ckpt-5.index', 'run.bak/run.json', 'run[1]/a', 'checkpoint', 'run.new']
TRAINERS = [['cifar10_train'], ['cifar10_multi_gpu_train', '--num_gpus=2']]
logging.getLogger('tensorboard').setLevel(logging.ERROR)  # it would report every start of a trainer


def fingerprint(directory, left_out=()):
    """Return contents and times of the files in a directory, except the names `left_out`."""
    found = {}
    for folder, folders, names in os.walk(directory):
        if folder == directory:
            folders[:], names = [set(entries) - set(left_out) for entries in (folders, names)]
        for path in [os.path.join(folder, name) for name in names]:
            with open(path, 'rb') as opened:
                digest = hashlib.sha256(opened.read()).hexdigest()
            found[os.path.relpath(path, directory)] = digest, os.stat(path).st_mtime_ns
    return found


class Soak:
    """State of the soak.

    Attributes:
      base: a directory in which disk/ may be a small disk.
      rng: a random.Random.
      trainer: the Process of the trainer, or None.
      intact: (step, time) of the checkpoints seen intact, which must not vanish.
      damaged: (step, time) of the checkpoints damaged on purpose.
      complete_after: the step after which no summary may be missing.
      last_step: the last step logged by the previous trainer.
      leftovers: files that the next start removes.
    """

    def __init__(self, base, rng):
        self.base, self.rng = base, rng
        self.disk = os.path.join(base, 'disk')
        self.run = os.path.join(self.disk, 'run')
        self.data = data_sets.write(os.path.join(base, 'data'))
        shutil.copytree(self.data, os.path.join(base, 'good data'))
        for name in NEIGHBOURS:
            path = os.path.join(self.disk, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as opened:
                opened.write('nobody may touch it')
        self._untouched = self._surroundings()
        self._processes = []
        self.trainer = None
        self.precisions = set()  # of the copy of an early checkpoint
        self.counts = collections.Counter()
        self.new_run()

    def new_run(self):
        """Forget the run, before it is moved out of its directory."""
        self.intact, self.damaged, self.leftovers = set(), set(), set()
        self.complete_after = self.last_step = self._first_step = 0
        self._newest_at_start = None

    def _surroundings(self):
        return fingerprint(self.disk, ('run', 'eval', 'filler')), fingerprint(self.data)

    def pause(self, longest_secs):
        """Sleep for a random time."""
        time.sleep(self.rng.uniform(0, longest_secs))

    def process(self, script, *args, stdout=None):
        """Start a script."""
        output = os.path.join(self.base, f'{len(self._processes):05}')
        self._processes.append(Process(output, script, *args, stdout=stdout))
        return self._processes[-1]

    def trainer_args(self):
        """Return a random trainer with its flags."""
        return self.rng.choice(TRAINERS) + [
            '--dataset=synthetic',
            '--data_dir=' + self.data,
            '--train_dir=' + self.run,
            '--batch_size=8',
            '--log_frequency=5',
            '--initial_learning_rate=0.001',
            f'--save_summaries_steps={SUMMARY_STEPS}',
            f'--save_checkpoint_steps={CHECKPOINT_STEPS}',
        ]

    def start(self, *flags, stdout=None):
        """Start a trainer and return it; call `ended` after its end."""
        self._newest_at_start = self.scan()
        self.counts['starts'] += 1
        self.trainer = self.process(*self.trainer_args(), *flags, stdout=stdout)
        return self.trainer

    def training(self):
        """Return the trainer after a logged step; start it if there is none.

        Raises:
          Violation: it does not resume from the newest intact checkpoint.
        """
        if self.trainer is None:
            self.start()
        self.trainer.wait_for(STEP)
        self.check_running()
        self._check_resumed()
        left = [path for path in self.leftovers if os.path.exists(path)]
        if left:
            raise Violation(f'{left} are still there after a start')
        self.leftovers.clear()
        return self.trainer

    def check_running(self):
        """Raise Violation if the trainer has ended."""
        if self.trainer and not self.trainer.running():
            self.trainer.end()  # no exit status is allowed

    def _check_resumed(self):
        resumed = [int(step) for step in RESUMED.findall(self.trainer.stdout())]
        newest = [self._newest_at_start] if self._newest_at_start else []
        if (resumed or self.trainer.step()) and resumed != newest:
            raise Violation(
                f'{self.trainer} resumed from {resumed}, although the newest intact checkpoint was that of {newest}'
            )
        self._first_step = sum(resumed)

    def ended(self, *statuses, line=''):
        """Wait for the end of the trainer and check it; with status 0, each step must be saved."""
        status = self.trainer.end(*statuses, line=line)
        self._check_resumed()
        trainer, self.trainer = self.trainer, None
        self.last_step = trainer.step()
        self.counts['steps'] += max(0, self.last_step - self._first_step)
        self.leftovers.update(glob.glob(os.path.join(self.run, '*t*mp*')))
        newest = self.scan()
        saved = [int(step) for step in re.findall(r'(?m)^Saved .*-(\d+)$', trainer.stdout())]
        if saved and saved[-1] != newest or status == 0 and self.last_step > (newest or 0):
            raise Violation(
                f'{trainer} ended with status {status} at step {self.last_step}. It saved {saved}; the newest intact '
                f'checkpoint is that of {newest}'
            )
        return status

    def no_trainer(self):
        """End the trainer, if there is one, with or without a checkpoint."""
        if self.trainer is not None:
            number = self.rng.choice([signal.SIGKILL, signal.SIGTERM])
            self.training().send(number)
            self.ended(-number if number == signal.SIGKILL else 0)

    def scan(self):
        """Read every value of all checkpoints, without a trainer.

        Returns:
          The newest intact step, or None.

        Raises:
          Violation: a checkpoint is lost before MAX_TO_KEEP newer ones, or damaged by no fault.
        """
        found = set()
        for index in glob.glob(os.path.join(self.run, 'model.ckpt-*.index')):
            with contextlib.suppress(Exception):  # TensorFlow also raises IndexError.
                reader = tf.train.load_checkpoint(index[: -len('.index')])
                names = reader.get_variable_to_shape_map()
                values = {name: reader.get_tensor(name) for name in names}
                found.add((int(values['global_step']), os.stat(index).st_mtime_ns))
        for step, saved in self.intact - found:
            later = [other for other in found | self.damaged if other[1] > saved]
            if len(later) < MAX_TO_KEEP:
                raise Violation(
                    f'The checkpoint of step {step} has vanished or is damaged; there are {sorted(found)}'
                )
        self.intact = found
        self.counts['checkpoints read'] += len(found)
        return max(found)[0] if found else None

    def check_curve(self):
        """Read the event files as TensorBoard does.

        Raises:
          Violation: steps are repeated or missing.
        """
        accumulator = event_accumulator.EventAccumulator(
            self.run, {event_accumulator.SCALARS: 0}, purge_orphaned_data=True
        ).Reload()
        steps = []
        if 'total_loss' in accumulator.Tags()['scalars']:
            steps = [event.step for event in accumulator.Scalars('total_loss')]
        # The log line of a step can precede its summary.
        last = self.step() - 1
        wanted = {
            step
            for step in range(SUMMARY_STEPS, last + 1, SUMMARY_STEPS)
            if step > self.complete_after
        }
        if steps != sorted(set(steps)) or not wanted <= set(steps):
            raise Violation(f'The curve up to step {last} has the steps {steps}')
        self.counts['curves read'] += 1

    def step(self):
        """Return the last known step of the run."""
        return self.trainer.step() if self.trainer else self.last_step

    def evaluation(self, directory, *flags):
        """Start an evaluation of a directory; without flags, with --run_once."""
        self.counts['evaluations'] += 1
        return self.process(
            'cifar10_eval',
            '--dataset=synthetic',
            '--data_dir=' + self.data,
            '--checkpoint_dir=' + directory,
            '--eval_dir=' + os.path.join(self.disk, 'eval'),
            *(flags or ['--run_once']),
        )

    def inject(self, fault):
        """Inject a fault, and check the invariants."""
        began = time.monotonic()
        fault(self)
        if self._surroundings() != self._untouched:
            raise Violation('Something outside the directory of the run has changed')
        self.check_running()
        if self.rng.random() < 0.3:
            self.check_curve()
        self.counts[fault.__name__] += 1
        took = time.monotonic() - began
        print(f'{fault.__name__!s:<26} {took:5.1f} s, step {self.step()}', flush=True)

    def kill_all(self):
        """Kill all processes."""
        for started in self._processes:
            started.kill()
