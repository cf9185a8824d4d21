"""The faults of tests/soak.py: each a function of the Soak, in one table with its weight.

A fault that ends the trainer waits for that end and checks it; the next one starts the trainer again.
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import time

from tests.helpers import soaking
from tests.helpers.soaking import SUMMARY_STEPS, Violation, wait

STOPPING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


def _pause(soak, longest_secs):
    time.sleep(soak.rng.uniform(0, longest_secs))


def _advance(trainer, steps=1):
    """Waits until the trainer has logged so many more steps."""
    start = trainer.step()
    wait(lambda: trainer.step() >= start + steps or not trainer.running(), 'More steps of %s' % trainer)


def kill(soak):
    trainer = soak.training()
    _pause(soak, 2)
    trainer.send(signal.SIGKILL)
    soak.ended(-signal.SIGKILL)


def kill_at_start(soak):
    soak.stopped()
    trainer = soak.start()
    _pause(soak, 8)
    trainer.send(signal.SIGKILL)
    soak.ended(-signal.SIGKILL)


def kill_during_save(soak):
    trainer = soak.training()
    with contextlib.suppress(Violation):
        wait(lambda: glob.glob(os.path.join(soak.run, '*temp*')), 'A save', deadline_secs=5, every_secs=0.0005)
    _pause(soak, 0.03)
    trainer.send(signal.SIGKILL)
    soak.ended(-signal.SIGKILL)


def _end_by_signal(soak, *numbers, delay_secs=0.0, statuses=()):
    trainer = soak.trainer
    for number in numbers:
        trainer.send(number)
        time.sleep(delay_secs)
    return soak.ended(*statuses, line=r'interrupted \((%s)\)' % '|'.join(number.name for number in numbers))


def signal_while_training(soak):
    soak.training()
    _pause(soak, 1)
    _end_by_signal(soak, soak.rng.choice(STOPPING), statuses=[0])


def signal_at_start(soak):
    soak.stopped()
    trainer = soak.start()
    trainer.quiet()
    _pause(soak, 8)
    number = soak.rng.choice(STOPPING)
    status = _end_by_signal(soak, number, statuses=[0, 128 + number])
    if (status == 0) != ('%s: stopping' % number.name in trainer.stdout()):
        raise Violation('%s ended with %d: training was %sunder way' % (trainer, status, 'not ' if status == 0 else ''))


def two_signals(soak):
    if soak.rng.random() < 0.5:
        soak.training()
        _pause(soak, 1)
    else:
        soak.stopped()
        soak.start().quiet()
        _pause(soak, 8)
    numbers = [soak.rng.choice(STOPPING) for _ in range(2)]
    _end_by_signal(soak, *numbers, delay_secs=soak.rng.choice([0, 0.001, 0.01, 0.1]),
                   statuses=[0] + [128 + number for number in numbers])


def stop_for_a_while(soak):
    trainer = soak.training()
    trainer.stop()
    _pause(soak, 3)
    if soak.rng.random() < 0.3:
        trainer.send(signal.SIGKILL)
        soak.ended(-signal.SIGKILL)
    else:
        trainer.send(signal.SIGCONT)
        _advance(trainer)


def run_to_an_end(soak):
    soak.stopped()
    last = (soak.record.scan() or 0) + soak.rng.randrange(1, 100)
    trainer = soak.start('--max_steps=%d' % last)
    soak.ended(0)
    if trainer.step() != last or soak.record.scan() != last:
        raise Violation('%s ended at step %d instead of %d' % (trainer, trainer.step(), last))


def second_trainer(soak):
    trainer = soak.training()
    if soak.rng.random() < 0.3:
        trainer.stop()
    soak.process(*soak.trainer_args()).end(1, line='Another process is training in')
    trainer.send(signal.SIGCONT)
    _advance(trainer)


def close_stdout(soak):
    soak.stopped()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    trainer = soak.start(stdout=writer)
    os.close(writer)

    def logged():
        with contextlib.suppress(BlockingIOError):
            trainer.note(os.read(reader, 65536))
        return soaking.STEP.search(trainer.stdout()) or not trainer.running()
    wait(logged, 'The start of %s' % trainer)
    os.close(reader)
    soak.ended(0)


def _fill(soak, left=0):
    """Takes the room of the disk, but for `left` bytes."""
    room = shutil.disk_usage(soak.disk).free - left
    with contextlib.suppress(OSError), open(os.path.join(soak.disk, 'filler'), 'wb', buffering=0) as filler:
        while room > 0:
            room -= filler.write(bytes(min(room, 65536)))


def _make_room(soak):
    os.remove(os.path.join(soak.disk, 'filler'))


def full_disk(soak):
    trainer = soak.training()
    soak.record.open_since = trainer.step()
    _fill(soak, soak.rng.choice([0, 0, 100000, soak.rng.randrange(30 * 2 ** 20)]))
    _pause(soak, 6)
    end = soak.rng.choice(['none', 'none', 'kill', 'signal'])
    if end == 'kill':
        trainer.send(signal.SIGKILL)
        soak.ended(-signal.SIGKILL)
    if end == 'signal':
        trainer.send(soak.rng.choice(STOPPING))
        soak.ended(0, 1, line='Cannot save|Cannot write summaries')
    _make_room(soak)
    if end == 'none':
        step = trainer.step()
        _advance(trainer, 3 * SUMMARY_STEPS)
        soak.record.close(step)
        trainer.send(signal.SIGTERM)
        soak.ended(0)


def full_disk_at_start(soak):
    soak.stopped()
    _fill(soak)
    soak.start()
    soak.ended(1)
    if soak.record.scan():
        soak.evaluation(soak.run).end(1)
    _make_room(soak)


def _damage(soak, path, kinds=('truncated', 'overwritten', 'deleted'), content=None):
    """Damages a file; returns how."""
    kind, size = soak.rng.choice(kinds), os.path.getsize(path)
    if kind == 'deleted':
        os.remove(path)
        return kind
    with open(path, 'r+b') as opened:
        if kind == 'truncated':
            opened.truncate(soak.rng.choice([0, soak.rng.randrange(size)]))
        else:
            length = soak.rng.choice([1, 8, 512, 65536])
            opened.seek(soak.rng.randrange(size))
            opened.write(content or bytes(soak.rng.randrange(256) for _ in range(min(length, size - opened.tell()))))
    return kind


def damage_checkpoints(soak):
    soak.stopped()
    soak.record.scan()
    newest = sorted(soak.record.intact, reverse=True)
    for step, saved in newest[:soak.rng.randrange(1, max(2, len(newest)))]:
        if len(soak.record.intact) > 1:
            soak.record.damaged((step, saved))
            path = os.path.join(soak.run, 'model.ckpt-%d.' % step) + soak.rng.choice(['data-00000-of-00001', 'index'])
            _damage(soak, path)


def damage_list(soak):
    soak.stopped()
    path = os.path.join(soak.run, 'checkpoint')
    if os.path.exists(path) and os.path.getsize(path):
        _damage(soak, path)


def damage_record(soak):
    if soak.rng.random() < 0.5:
        soak.stopped()
    path = os.path.join(soak.run, 'run.json')
    if os.path.exists(path) and _damage(soak, path, content=b'\xff') != 'deleted':  # no JSON, wherever it stands
        soak.stopped()
        soak.start()
        soak.ended(1, line='run.json.*delete it')
        os.remove(path)


def damage_summaries(soak):
    paths = glob.glob(os.path.join(soak.run, 'events.*'))
    path = soak.rng.choice(sorted(paths)) if paths else None
    if path and os.path.getsize(path):
        steps = soaking.curve(path)
        soak.record.forgiven.update(steps)
        if soak.trainer is not None:  # it may be the file that it writes
            soak.record.open_since = min(steps + [soak.trainer.step()])
        _damage(soak, path)


def leave_unfinished_files(soak):
    soak.stopped()
    for name in ('model.ckpt-%d.data-00000-of-00001.tempstate%d' % (soak.rng.randrange(999), soak.rng.getrandbits(63)),
                 'model.ckpt-%d.index.tempstate%d' % (soak.rng.randrange(999), soak.rng.getrandbits(63)),
                 'checkpoint.tmp%032x' % soak.rng.getrandbits(128), 'run.json.new'):
        soak.leftovers.append(os.path.join(soak.run, name))
        os.makedirs(soak.run, exist_ok=True)
        with open(soak.leftovers[-1], 'wb') as opened:
            opened.write(bytes(soak.rng.randrange(10 ** 5)))


def change_data(soak):
    trainer = soak.training()
    name = 'data_batch_%d.bin' % soak.rng.randrange(1, 6)
    path, = glob.glob(os.path.join(soak.data, '*', name))
    good, = glob.glob(os.path.join(soak.base, 'good data', '*', name))
    how = soak.rng.choice(['empty', 'cut', 'removed', 'FIFO', 'directory', 'label'])
    if how in ('empty', 'cut'):
        os.truncate(path, 0 if how == 'empty' else soak.rng.randrange(os.path.getsize(path)))
    elif how == 'label':
        with open(path, 'r+b') as opened:
            opened.write(b'\xff')
    else:
        os.remove(path)
    if how in ('FIFO', 'directory'):
        (os.mkfifo if how == 'FIFO' else os.mkdir)(path)
    wait(lambda: not trainer.running(), 'The end of %s without its data' % trainer, deadline_secs=60)
    soak.ended(1, line=re.escape(name))
    if how == 'directory':
        os.rmdir(path)
    elif how != 'removed':
        os.remove(path)
    shutil.copy2(good, path)
    if soak.record.scan() < soak.last_step:
        raise Violation('%s has lost the steps since its last checkpoint: %s, %s'
                        % (trainer, soak.record.scan(), soak.last_step))


def move_away(soak):
    trainer = soak.training()
    away = soak.run + '-away'
    os.rename(soak.run, away)
    if soak.rng.random() < 0.5:
        wait(lambda: not trainer.running(), 'The end of %s without its directory' % trainer)
    else:
        _pause(soak, 0.3)
    if os.path.exists(soak.run):
        raise Violation('%s has made its directory again, which was moved away' % trainer)
    os.rename(away, soak.run)
    _advance(trainer)
    if not trainer.running():
        soak.ended(1, line='has been moved or removed')


def evaluate(soak):
    """The copy of an early checkpoint, and the newest checkpoint of the run twice."""
    copy = os.path.join(soak.base, 'copy')
    trainer = soak.training()
    trainer.stop()
    newest = soak.record.scan()
    if newest:
        if not os.path.exists(copy):
            shutil.copytree(soak.run, copy, ignore=shutil.ignore_patterns('events.*'))
        first, second = soak.precision(soak.run), soak.precision(soak.run)
        if first != second or not first.endswith('step %d)' % newest):
            raise Violation('The precision of step %d is first %s, then %s' % (newest, first, second))
    trainer.send(signal.SIGCONT)
    if os.path.exists(copy):
        precision = soak.precision(copy)
        if soak.precisions.setdefault(copy, precision) != precision:
            raise Violation('The precision of %s was %s, and is %s' % (copy, soak.precisions[copy], precision))


def evaluate_while_training(soak):
    soak.training()
    process = soak.evaluation(soak.run, '--eval_interval_secs=1')
    wait(lambda: len(soaking.PRECISION.findall(process.stdout())) > 2 or not process.running(), 'Evaluations by %s' % process)
    number = soak.rng.choice(STOPPING)
    process.send(number)
    process.end(128 + number, line=r'interrupted \(%s\)' % number.name)
    steps = [int(text.rsplit(' ', 1)[1][:-1]) for text in soaking.PRECISION.findall(process.stdout())]
    if steps != sorted(set(steps)):
        raise Violation('%s evaluated the steps %s' % (process, steps))
    soak.totals['evaluations'] += len(steps)
    _advance(soak.trainer)


def new_run(soak):
    soak.stopped()
    soak.check_curve()
    before = soaking.fingerprint(soak.run)
    soak.start('--fresh')
    soak.new_run()
    soak.training()
    aside, = glob.glob(soak.run + '.2*')
    after = soaking.fingerprint(aside)
    if {path.replace(aside, soak.run): value for path, value in after.items()} != before:
        raise Violation('--fresh has changed the run that it moved to %s' % aside)
    shutil.rmtree(aside)


FAULTS = {
    'kill': (10, kill), 'kill at start': (10, kill_at_start), 'kill during save': (10, kill_during_save),
    'signal': (6, signal_while_training), 'signal at start': (6, signal_at_start), 'two signals': (6, two_signals),
    'stop': (5, stop_for_a_while), 'end': (4, run_to_an_end), 'second trainer': (3, second_trainer),
    'closed stdout': (3, close_stdout), 'full disk': (6, full_disk), 'full disk at start': (3, full_disk_at_start),
    'damaged checkpoints': (8, damage_checkpoints), 'damaged list': (6, damage_list), 'damaged record': (4, damage_record),
    'damaged summaries': (4, damage_summaries), 'unfinished files': (4, leave_unfinished_files), 'changed data': (3, change_data),
    'moved directory': (4, move_away), 'evaluation': (3, evaluate), 'evaluation while training': (3, evaluate_while_training),
    'new run': (1, new_run),
}
NEED_SMALL_DISK = ['full disk', 'full disk at start']
