"""Faults of processes: killed, stopped, interrupted, two at once, output that nobody reads.

Each function gets the Soak. One that ends the trainer waits for that end and checks it; the next
fault starts it again.
"""

import contextlib
import glob
import os
import shutil
import signal
import time

from tests.helpers.soaking import process, record
from tests.helpers.soaking.process import Violation, wait

STOPPING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
START_SECS = 8  # of a trainer, at most; a little longer, so that faults hit it at every moment


def pause(soak, longest_secs):
    """Waits for a while."""
    time.sleep(soak.rng.uniform(0, longest_secs))


def kill(soak):
    soak.training()
    pause(soak, 2)
    _kill(soak)


def _kill(soak):
    soak.trainer.send(signal.SIGKILL)
    soak.ended(-signal.SIGKILL)


def kill_at_start(soak):
    soak.no_trainer()
    soak.start()
    pause(soak, START_SECS)
    _kill(soak)


def kill_during_save(soak):
    soak.training()
    with contextlib.suppress(Violation):
        wait(
            lambda: glob.glob(os.path.join(soak.run, '*temp*')),
            'A save',
            deadline_secs=10,
            every_secs=0.0005,
        )
    pause(soak, 0.03)
    _kill(soak)


def stop_for_a_while(soak):
    trainer = soak.training()
    trainer.stop()
    pause(soak, 3)
    if soak.rng.random() < 0.3:
        _kill(soak)
    else:
        trainer.send(signal.SIGCONT)
        trainer.advance()


def _signal(soak, statuses, *numbers, delay_secs=0.0):
    """Sends signals, and checks that the line of an end other than 0 names one of them; returns the
    status."""
    for number in numbers:
        soak.trainer.send(number)
        time.sleep(delay_secs)
    return soak.ended(
        *statuses, line=r'interrupted \((%s)\)' % '|'.join(number.name for number in numbers)
    )


def signal_while_training(soak):
    soak.training()
    pause(soak, 1)
    _signal(soak, [0], soak.rng.choice(STOPPING))


def signal_at_start(soak):
    soak.no_trainer()
    trainer = soak.start()
    trainer.wait_until_imported()
    pause(soak, START_SECS)
    number = soak.rng.choice(STOPPING)
    status = _signal(soak, [0, 128 + number], number)
    if (status == 0) != ('%s: stopping' % number.name in trainer.stdout()):
        raise Violation(
            '%s ended with %d; training was%s under way'
            % (trainer, status, ' not' if status == 0 else '')
        )


def two_signals(soak):
    if soak.rng.random() < 0.5:
        soak.training()
        pause(soak, 1)
    else:
        soak.no_trainer()
        soak.start().wait_until_imported()
        pause(soak, START_SECS)
    numbers = [soak.rng.choice(STOPPING), soak.rng.choice(STOPPING)]
    # When a process has told of the first and is ending, Python's own handlers are gone: a shell
    # shows that as 128 + number, too.
    statuses = [0] + [128 + number for number in numbers] + [-number for number in numbers]
    _signal(soak, statuses, *numbers, delay_secs=soak.rng.choice([0, 0.001, 0.01, 0.1]))


def run_to_its_end(soak):
    soak.no_trainer()
    last = (soak.scan() or 0) + soak.rng.randrange(1, 100)
    trainer = soak.start('--max_steps=%d' % last)
    soak.ended(0)
    if (trainer.step(), soak.scan()) != (last, last):
        raise Violation(
            '%s ended at step %d, with a checkpoint of step %s, not at step %d'
            % (trainer, trainer.step(), soak.scan(), last)
        )


def second_trainer(soak):
    trainer = soak.training()
    if soak.rng.random() < 0.3:
        trainer.stop()
    soak.process(*soak.trainer_args()).end(1, line='Another process is training in')
    trainer.send(signal.SIGCONT)
    trainer.advance()


def closed_stdout(soak):
    soak.no_trainer()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    trainer = soak.start(stdout=writer)
    os.close(writer)

    def has_logged():
        with contextlib.suppress(BlockingIOError):
            trainer.note(os.read(reader, 65536))
        return process.STEP.search(trainer.stdout()) or not trainer.running()

    wait(has_logged, 'The start of %s' % trainer)
    os.close(reader)
    soak.ended(0)


def evaluation(soak):
    """Of the newest checkpoint twice, and of a copy of an early one, whose precision never
    changes."""
    copy = os.path.join(soak.base, 'copy')
    trainer = soak.training()
    trainer.stop()  # wherever it is
    newest = soak.scan()
    if newest:
        if not os.path.exists(copy):
            shutil.copytree(soak.run, copy, ignore=shutil.ignore_patterns('events.*'))
        first, second = soak.precision(soak.run), soak.precision(soak.run)
        if first != second or not first.endswith('step %d)' % newest):
            raise Violation(
                'The precision of the checkpoint of step %d is first %s, then %s'
                % (newest, first, second)
            )
    trainer.send(signal.SIGCONT)
    if os.path.exists(copy):
        soak.precisions.add(soak.precision(copy))
        if len(soak.precisions) > 1:
            raise Violation(
                'The precision of %s was first one, then another: %s'
                % (copy, sorted(soak.precisions))
            )
    trainer.advance()
    return bool(newest)


def evaluation_while_training(soak):
    trainer = soak.training()
    evaluator = soak.evaluation(soak.run, '--eval_interval_secs=1')
    wait(
        lambda: len(process.PRECISION.findall(evaluator.stdout())) > 2 or not evaluator.running(),
        'Evaluations by %s' % evaluator,
    )
    number = soak.rng.choice(STOPPING)
    evaluator.send(number)
    evaluator.end(128 + number, line=r'interrupted \(%s\)' % number.name)
    steps = [
        int(text.rstrip(')').split()[-1]) for text in process.PRECISION.findall(evaluator.stdout())
    ]
    soak.totals['evaluations'] += len(steps)
    if steps != sorted(set(steps)):
        raise Violation('%s evaluated the steps %s' % (evaluator, steps))
    trainer.advance()


def new_run(soak):
    soak.no_trainer()
    soak.check_curve()
    before = record.fingerprint(soak.run)
    soak.start('--fresh')
    soak.new_run()
    soak.training()
    (aside,) = glob.glob(soak.run + '.2*')
    if {
        path.replace(aside, soak.run): value for path, value in record.fingerprint(aside).items()
    } != before:
        raise Violation('--fresh has changed the run that it moved to %s' % aside)
    shutil.rmtree(aside)
