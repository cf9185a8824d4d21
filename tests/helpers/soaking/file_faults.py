"""Faults of files: a full disk, files damaged, left over or changed, a directory that moves.

Each function gets the Soak; one that could do nothing returns False. See process_faults.py.
"""

import contextlib
import glob
import os
import re
import shutil
import signal

from tests.helpers.soaking import record
from tests.helpers.soaking.process import Violation, wait
from tests.helpers.soaking.process_faults import STOPPING, pause


def _fill(soak, left=0):
    """Takes the room of the disk, but for `left` bytes."""
    room = shutil.disk_usage(soak.disk).free - left
    with contextlib.suppress(OSError), open(
        os.path.join(soak.disk, 'filler'), 'wb', buffering=0
    ) as filler:
        while room > 0:
            room -= filler.write(bytes(min(room, 65536)))


def _make_room(soak):
    os.remove(os.path.join(soak.disk, 'filler'))


def full_disk(soak):
    """For a while: the trainer goes on, or ends meanwhile."""
    trainer = soak.training()
    soak.record.losing_since = trainer.step()
    _fill(soak, soak.rng.choice([0, 0, 100000, soak.rng.randrange(30 * 2**20)]))
    pause(soak, 6)
    end = soak.rng.choice([None, None, signal.SIGKILL, soak.rng.choice(STOPPING)])
    if end == signal.SIGKILL:
        trainer.send(end)
        soak.ended(-end)
    elif end:
        trainer.send(end)
        soak.ended(0, 1, line='Cannot save|Cannot write summaries')
    _make_room(soak)
    if not end:
        step = trainer.step()
        trainer.advance(3 * record.SUMMARY_STEPS)
        soak.record.stop_losing(step)
        trainer.send(signal.SIGTERM)
        soak.ended(0)


def full_disk_at_start(soak):
    # what the first one no longer lists, the second one removes: later that would make room
    for _ in range(2):
        soak.training().send(signal.SIGTERM)
        soak.ended(0)
    _fill(soak)
    soak.start()
    soak.ended(1)
    if soak.scan():
        soak.evaluation(soak.run).end(1)
    _make_room(soak)


def _damage(soak, path, content=None):
    """Truncates a file, overwrites a part of it with `content` or with anything, or deletes it;
    returns which."""
    kind, size = soak.rng.choice(['truncated', 'overwritten', 'deleted']), os.path.getsize(path)
    if kind == 'deleted':
        os.remove(path)
        return kind
    with open(path, 'r+b') as opened:
        if kind == 'truncated':
            opened.truncate(soak.rng.choice([0, soak.rng.randrange(size)]))
        else:
            opened.seek(soak.rng.randrange(size))
            length = min(soak.rng.choice([1, 8, 512, 65536]), size - opened.tell())
            opened.write(content or bytes(soak.rng.randrange(256) for _ in range(length)))
    return kind


def damaged_checkpoints(soak):
    """The newest ones, but not all."""
    soak.no_trainer()
    soak.scan()
    newest = sorted(soak.record.intact, reverse=True)[:-1]
    for step, saved in newest[: soak.rng.randrange(len(newest)) + 1] if newest else []:
        soak.record.damaged((step, saved))
        _damage(
            soak,
            os.path.join(
                soak.run,
                'model.ckpt-%d.%s' % (step, soak.rng.choice(['data-00000-of-00001', 'index'])),
            ),
        )
    return bool(newest)


def damaged_list(soak):
    soak.no_trainer()
    path = os.path.join(soak.run, 'checkpoint')
    if not soak.scan() or not os.path.exists(path) or not os.path.getsize(path):
        return False
    _damage(soak, path)
    return True


def damaged_record(soak):
    """A start names it, and starts again without it."""
    soak.no_trainer()
    path = os.path.join(soak.run, 'run.json')
    if not soak.scan() or not os.path.exists(path):
        return False
    if _damage(soak, path, content=b'\xff') != 'deleted':  # what is no JSON, wherever it stands
        soak.start()
        soak.ended(1, line='run.json.*delete it')
        os.remove(path)
    return True


def damaged_summaries(soak):
    paths = sorted(
        path for path in glob.glob(os.path.join(soak.run, 'events.*')) if os.path.getsize(path)
    )
    if not paths:
        return False
    path = soak.rng.choice(paths)
    steps = record.curve(path)
    soak.record.forgiven.update(steps)
    if soak.trainer:  # it may be the file that it writes
        soak.record.losing_since = min(steps + [soak.trainer.step()])
    _damage(soak, path)
    return True


def unfinished_files(soak):
    """What is left by processes that were killed while they saved."""
    soak.no_trainer()
    soak.scan()
    os.makedirs(soak.run, exist_ok=True)
    number = soak.rng.getrandbits(63)
    for name in (
        'model.ckpt-%d.data-00000-of-00001.tempstate%d' % (number % 1000, number),
        'model.ckpt-%d.index.tempstate%d' % (number % 1000, number),
        'checkpoint.tmp%032x' % number,
        'run.json.new',
    ):
        path = os.path.join(soak.run, name)
        with open(path, 'wb') as opened:
            opened.write(bytes(number % 100000))
        soak.leftovers.add(path)


def changed_data(soak):
    """The trainer notices it, names the file, and saves."""
    trainer = soak.training()
    name = 'data_batch_%d.bin' % soak.rng.randrange(1, 6)
    (path,) = glob.glob(os.path.join(soak.data, '*', name))
    (good,) = glob.glob(os.path.join(soak.base, 'good data', '*', name))
    how = soak.rng.choice(['empty', 'cut', 'removed', 'a FIFO', 'a directory', 'a label'])
    if how in ('empty', 'cut'):
        os.truncate(path, 0 if how == 'empty' else soak.rng.randrange(os.path.getsize(path)))
    elif how == 'a label':
        with open(path, 'r+b') as opened:
            opened.write(b'\xff')
    else:
        os.remove(path)
    if how in ('a FIFO', 'a directory'):
        (os.mkfifo if how == 'a FIFO' else os.mkdir)(path)
    wait(
        lambda: not trainer.running(),
        'The end of %s, whose %s is %s' % (trainer, name, how),
        deadline_secs=60,
    )
    soak.ended(1, line=re.escape(name))
    if how == 'a directory':
        os.rmdir(path)
    elif how != 'removed':
        os.remove(path)
    shutil.copy2(good, path)
    if soak.last_step > (soak.scan() or 0):
        raise Violation(
            '%s has not saved the steps from %s to %d' % (trainer, soak.scan(), soak.last_step)
        )


def moved_directory(soak):
    """For a while: the trainer ends, or has not noticed it."""
    trainer = soak.training()
    away = soak.run + '-away'
    os.rename(soak.run, away)
    if soak.rng.random() < 0.5:
        wait(lambda: not trainer.running(), 'The end of %s without its directory' % trainer)
    else:
        pause(soak, 0.3)
    if os.path.exists(soak.run):  # only TensorFlow makes it again, if a checkpoint is being saved
        wait(lambda: not trainer.running(), 'The end of %s without its directory' % trainer)
        if not glob.glob(os.path.join(soak.run, 'model.ckpt-*.index')):
            raise Violation('%s has made its directory again, which was moved away' % trainer)
        shutil.rmtree(soak.run)
    os.rename(away, soak.run)
    trainer.advance()
    if not trainer.running():
        soak.ended(1, line='has been moved or removed')
