#!/usr/bin/env python3
"""Train, evaluate and resume one run for hours under random faults; check every promise.

It is not a pytest test. It needs Linux; as root it also fills a small disk.

  python tests/soak.py --minutes=60
  python tests/soak.py --minutes=60 --replay=1

With --replay, deterministic runs of so many towers are killed at random moments, until the time is
over; each end is compared with that of a run that is not killed.

It exits with status 1 at the first broken promise. --seed=N with the printed number repeats its
random choices, although not at the same times.
"""

import argparse
import contextlib
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cifar10.system import directories  # noqa: E402
from tests.helpers import messages  # noqa: E402
from tests.helpers.soaking.process import STEP, Violation, wait  # noqa: E402
from tests.helpers.soaking.replay import ReplaySoak  # noqa: E402
from tests.helpers.soaking.session import SUMMARY_STEPS, Soak, fingerprint  # noqa: E402

DISK_BYTES = 256 * 2**20
MAX_RUN_BYTES = 128 * 2**20  # a longer run is moved aside
STOP_SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
START_SECS = 8  # longest start of a trainer, so that faults hit every phase
PRECISION = messages.precision(50)


# Faults. A fault that ends the trainer checks its end; the next fault restarts it.


def _at_any_moment(soak):
    """Return the trainer in any phase of its start or training."""
    if soak.rng.random() < 0.5:
        soak.training()
        soak.pause(1)
    else:
        soak.no_trainer()
        soak.start().wait_until_imported()
        soak.pause(START_SECS)
    return soak.trainer


def kill(soak):
    trainer = _at_any_moment(soak)
    if soak.rng.random() < 0.3:  # during a save
        temporary = os.path.join(soak.run, '*temp*')
        wait(lambda: glob.glob(temporary) or not trainer.running(), f'A save by {trainer}')
        soak.pause(0.03)
    trainer.send(signal.SIGKILL)
    soak.ended(-signal.SIGKILL)


def stop_for_a_while(soak):
    trainer = soak.training()
    trainer.send(signal.SIGSTOP)
    soak.pause(3)
    trainer.send(signal.SIGCONT)
    trainer.advance()


def signals(soak):
    trainer = _at_any_moment(soak)
    numbers = [soak.rng.choice(STOP_SIGNALS) for _ in range(soak.rng.choice([1, 2]))]
    for number in numbers:
        trainer.send(number)
        time.sleep(soak.rng.choice([0, 0.001, 0.01, 0.1]))
    statuses = [0] + [128 + number for number in numbers]
    if len(numbers) == 2:
        # After the message about the first signal, Python's handlers are gone.
        statuses += [-number for number in numbers]
    names = '|'.join(number.name for number in numbers)
    soak.ended(*statuses, line=rf'interrupted \(({names})\)')


def run_to_its_end(soak):
    soak.no_trainer()
    last = (soak.scan() or 0) + soak.rng.randrange(1, 100)
    soak.start(f'--max_steps={last}')
    soak.ended(0)
    if soak.last_step != last:
        raise Violation(f'A run of {last} steps ended at step {soak.last_step}')


def second_trainer(soak):
    trainer = soak.training()
    soak.process(*soak.trainer_args()).end(1, line='Another process is training in')
    trainer.advance()


def closed_stdout(soak):
    soak.no_trainer()
    reader, writer = os.pipe()
    trainer = soak.start(stdout=writer)
    os.close(writer)
    with open(reader, 'rb', buffering=0) as lines, open(trainer.out, 'ab') as out:
        for line in lines:
            out.write(line)
            if STEP.search(line.decode()):
                break
    soak.ended(0)


def _precision(soak, directory):
    evaluation = soak.evaluation(directory)
    evaluation.end(0)
    return re.findall(PRECISION, evaluation.stdout())


def evaluation(soak):
    """Evaluate the newest checkpoint twice, and an early one, whose precision must not change."""
    copy = os.path.join(soak.base, 'copy')
    soak.no_trainer()
    newest = soak.scan()
    if newest:
        if not os.path.exists(copy):
            shutil.copytree(soak.run, copy, ignore=shutil.ignore_patterns('events.*'))
        found = _precision(soak, soak.run) + _precision(soak, soak.run)
        if len(found) != 2 or len(set(found)) > 1 or int(found[0][2]) != newest:
            raise Violation(f'The precision of step {newest} is {found}')
        soak.precisions.update(_precision(soak, copy))
        if len(soak.precisions) > 1:
            raise Violation(f'The precision of {copy} has changed: {soak.precisions}')


def evaluation_while_training(soak):
    trainer = soak.training()
    evaluator = soak.evaluation(soak.run, '--eval_interval_secs=1')
    evaluator.wait_for(PRECISION, 3)
    number = soak.rng.choice(STOP_SIGNALS)
    evaluator.send(number)
    evaluator.end(128 + number, line=rf'interrupted \({number.name}\)')
    steps = [int(step) for *_, step in re.findall(PRECISION, evaluator.stdout())]
    if steps != sorted(set(steps)):
        raise Violation(f'{evaluator} evaluated the steps {steps}')
    trainer.advance()


def new_run(soak):
    soak.no_trainer()
    soak.check_curve()
    left_out = [directories.LOCK_FILE]  # of a killed trainer; the next trainer removes it
    before = fingerprint(soak.run, left_out)
    soak.start('--fresh')
    soak.new_run()
    soak.training()
    (aside,) = glob.glob(soak.run + '.2*')
    if fingerprint(aside, left_out) != before:
        raise Violation(f'--fresh has changed the run that it moved to {aside}')
    shutil.rmtree(aside)


@contextlib.contextmanager
def _filled(soak, left=0):
    """Fill the disk up to `left` free bytes, for the block."""
    path = os.path.join(soak.disk, 'filler')
    room = shutil.disk_usage(soak.disk).free - left
    with contextlib.suppress(OSError), open(path, 'wb', buffering=0) as filler:
        while room > 0:
            room -= filler.write(bytes(min(room, 65536)))
    yield
    os.remove(path)


def full_disk(soak):
    """The trainer continues, or is stopped during the fault."""
    trainer = soak.training()
    with _filled(soak, soak.rng.choice([0, 100000, soak.rng.randrange(30 * 2**20)])):
        soak.pause(6)
        if soak.rng.random() < 0.5:
            trainer.send(soak.rng.choice(STOP_SIGNALS))
            soak.ended(0, 1, line='Cannot save|Cannot write summaries')
    soak.complete_after = soak.step() + 2 * SUMMARY_STEPS
    if soak.trainer:
        trainer.advance(3 * SUMMARY_STEPS)


def full_disk_at_start(soak):
    # The second start removes files that the first one no longer lists. Later, that would free
    # space.
    for _ in range(2):
        soak.training().send(signal.SIGTERM)
        soak.ended(0)
    with _filled(soak):
        soak.start()
        soak.ended(1)
        soak.evaluation(soak.run).end(1)


def _damage(soak, path):
    """Truncate a file, overwrite a part with invalid UTF-8, or delete it."""
    kind, size = soak.rng.choice(['truncated', 'overwritten', 'deleted']), os.path.getsize(path)
    if kind == 'deleted':
        os.remove(path)
    elif kind == 'truncated':
        os.truncate(path, soak.rng.choice([0, soak.rng.randrange(size)]))
    else:
        with open(path, 'r+b') as opened:
            opened.seek(soak.rng.randrange(size))
            opened.write(b'\xff' * min(soak.rng.choice([1, 512]), size - opened.tell()))


def damaged_checkpoints(soak):
    """Damage the newest checkpoints, but not all."""
    soak.no_trainer()
    soak.scan()
    newest = sorted(soak.intact, reverse=True)[:-1]
    for step, saved in newest[: soak.rng.randrange(len(newest)) + 1] if newest else []:
        soak.damaged.add((step, saved))
        soak.intact.discard((step, saved))
        part = soak.rng.choice(['data-00000-of-00001', 'index'])
        _damage(soak, os.path.join(soak.run, f'model.ckpt-{step}.{part}'))


def damaged_file(soak):
    """Damage the list of checkpoints, the record of the run, or summaries."""
    soak.no_trainer()
    names = ['checkpoint', 'run.json', 'events.*']
    pattern = os.path.join(soak.run, soak.rng.choice(names))
    paths = [path for path in sorted(glob.glob(pattern)) if os.path.getsize(path)]
    if not paths or not soak.scan():
        return
    path = soak.rng.choice(paths)
    _damage(soak, path)
    if path.endswith('run.json') and os.path.exists(path):
        soak.start()
        soak.ended(1, line='run.json.*delete it')
        os.remove(path)
    if 'events.' in path:
        soak.complete_after = soak.step()


def unfinished_files(soak):
    """Leave files like a process that was killed during a save."""
    soak.training()
    soak.no_trainer()
    for name in (
        'model.ckpt-7.data-00000-of-00001.tempstate123456789',
        f'checkpoint.tmp{7:032x}',
        'run.json.new',
    ):
        path = os.path.join(soak.run, name)
        with open(path, 'wb') as opened:
            opened.write(bytes(1000))
        soak.leftovers.add(path)


def removed_data(soak):
    """Remove a data file; the trainer names it."""
    soak.training()
    name = f'data_batch_{soak.rng.randrange(1, 6)}.bin'
    (path,) = glob.glob(os.path.join(soak.data, '*', name))
    (good,) = glob.glob(os.path.join(soak.base, 'good data', '*', name))
    os.remove(path)
    soak.ended(1, line=re.escape(name))
    shutil.copy2(good, path)


def moved_directory(soak):
    """Move the directory for a time: the trainer ends, or does not notice."""
    trainer = soak.training()
    away = soak.run + '-away'
    os.rename(soak.run, away)
    soak.pause(1)
    if os.path.exists(soak.run):  # TensorFlow recreates it during a save
        wait(lambda: not trainer.running(), f'The end of {trainer} without its directory')
        shutil.rmtree(soak.run)
    os.rename(away, soak.run)
    trainer.advance()
    if not trainer.running():
        soak.ended(1, line=messages.MOVED)


NEED_A_SMALL_DISK = [full_disk, full_disk_at_start]
FAULTS = NEED_A_SMALL_DISK + [
    kill,
    stop_for_a_while,
    signals,
    run_to_its_end,
    second_trainer,
    closed_stdout,
    evaluation,
    evaluation_while_training,
    damaged_checkpoints,
    damaged_file,
    unfinished_files,
    removed_data,
    moved_directory,
    new_run,
]


def _soak(soak, faults, minutes):
    """Inject faults until the time is over, then end the run; return the Violation or None."""
    end = time.monotonic() + 60 * minutes
    try:
        soak.training()
        while time.monotonic() < end:
            soak.inject(soak.rng.choice(faults))
            files = glob.glob(os.path.join(soak.run, '*'))
            if not soak.trainer and sum(map(os.path.getsize, files)) > MAX_RUN_BYTES:
                soak.inject(new_run)
        soak.training().send(signal.SIGTERM)
        soak.ended(0)
        soak.check_curve()
    except Violation as error:
        return error
    finally:
        soak.kill_all()
        for name, count in sorted(soak.counts.items()):
            print(f'{name}: {count}', flush=True)


def _replay(base, args):
    """Stop and compare deterministic runs until the time is over; return the exit status."""
    print(f'--seed={args.seed}, in {base}', flush=True)
    soak, end = ReplaySoak(base, random.Random(args.seed), args.replay), time.monotonic()
    end += 60 * args.minutes
    try:
        while time.monotonic() < end:
            soak.run()
            print(dict(soak.counts), flush=True)
    except Violation as error:
        print(f'VIOLATED (--seed={args.seed}): {error}')
        return 1
    finally:
        if soak.trainer:
            soak.trainer.kill()
    shutil.rmtree(base)
    return 0


def main():
    """Parse the command line and prepare the directory; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(10**6))
    parser.add_argument(
        '--replay', type=int, choices=[1, 2], help='number of towers of deterministic runs'
    )
    parser.add_argument('--faults', help='names of faults, separated by commas')
    args = parser.parse_args()
    # Trainers would inherit ignored signals, as in a background job or under nohup.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, lambda *_: None)
    base = tempfile.mkdtemp(prefix='soak-')
    if args.replay:
        return _replay(base, args)
    disk = os.path.join(base, 'disk')
    os.mkdir(disk)
    mount = ['mount', '-t', 'tmpfs', '-o', f'size={DISK_BYTES}', 'soak', disk]
    has_small_disk = subprocess.call(mount) == 0
    faults = FAULTS if has_small_disk else FAULTS[len(NEED_A_SMALL_DISK) :]
    if args.faults:
        faults = [fault for fault in faults if fault.__name__ in args.faults.split(',')]
    print(f'--seed={args.seed}, in {base}: {len(faults)} faults', flush=True)
    violation = 'an error of the soak itself'
    try:
        violation = _soak(Soak(base, random.Random(args.seed)), faults, args.minutes)
    finally:
        if violation:
            kept = shutil.copytree(disk, os.path.join(base, 'kept'), symlinks=True)
            print(f'VIOLATED (--seed={args.seed}, kept in {kept}): {violation}')
        if has_small_disk:
            subprocess.check_call(['umount', '--lazy', disk])
    if not violation:
        shutil.rmtree(base)
    return int(bool(violation))


if __name__ == '__main__':
    sys.exit(main())
