#!/usr/bin/env python3
"""Trains, evaluates and resumes on one directory for hours while faults happen, and checks that
every promise is kept.

It is no test of pytest. It needs Linux; as root it also fills a disk, a small one of its own.

  python tests/soak.py --minutes=60

It ends with status 1 at the first promise that is not kept; --seed=N with the number that it
printed makes the same choices again, although not at the same moments. The parts are in
tests/helpers/soaking/.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.helpers.soaking import file_faults, process_faults, session  # noqa: E402
from tests.helpers.soaking.process import Violation  # noqa: E402

DISK_BYTES = 256 * 2**20
FAULTS = {  # with the weight of each
    'kill': (10, process_faults.kill),
    'kill at start': (10, process_faults.kill_at_start),
    'kill during save': (10, process_faults.kill_during_save),
    'stop': (5, process_faults.stop_for_a_while),
    'signal': (6, process_faults.signal_while_training),
    'signal at start': (6, process_faults.signal_at_start),
    'two signals': (6, process_faults.two_signals),
    'end': (4, process_faults.run_to_its_end),
    'second trainer': (3, process_faults.second_trainer),
    'closed stdout': (3, process_faults.closed_stdout),
    'evaluation': (4, process_faults.evaluation),
    'evaluation while training': (3, process_faults.evaluation_while_training),
    'new run': (1, process_faults.new_run),
    'full disk': (6, file_faults.full_disk),
    'full disk at start': (3, file_faults.full_disk_at_start),
    'damaged checkpoints': (8, file_faults.damaged_checkpoints),
    'damaged list': (6, file_faults.damaged_list),
    'damaged record': (3, file_faults.damaged_record),
    'damaged summaries': (4, file_faults.damaged_summaries),
    'unfinished files': (4, file_faults.unfinished_files),
    'changed data': (3, file_faults.changed_data),
    'moved directory': (4, file_faults.moved_directory),
}
NEED_A_SMALL_DISK = {'full disk', 'full disk at start'}


def _with_private_mounts():
    """Starts this program again where its mounts are its own and end with it; returns whether it
    already runs there."""
    if os.environ.get('SOAK_MOUNTS') == str(os.getpid()):
        return True
    is_root = hasattr(os, 'geteuid') and os.geteuid() == 0
    if (
        is_root
        and shutil.which('unshare')
        and subprocess.call(['unshare', '-m', 'true'], stderr=subprocess.DEVNULL) == 0
    ):
        os.environ['SOAK_MOUNTS'] = str(os.getpid())
        os.execvp('unshare', ['unshare', '-m', sys.executable] + sys.argv)
    return False


def _inject(soak, names, minutes):
    """Injects faults until the time is over."""
    end = time.monotonic() + 60 * minutes
    weights = [FAULTS[name][0] for name in names]
    while time.monotonic() < end:
        name = soak.rng.choices(names, weights)[0]
        if soak.inject(name, FAULTS[name][1]):
            soak.inject('new run', process_faults.new_run)
    soak.finish()


def _soak(base, names, args):
    """Soaks in the directory `base`; returns the exit status."""
    soak, kept = session.Soak(base, random.Random(args.seed)), os.path.join(base, 'kept')
    violation = 'an error of the soak itself'
    try:
        _inject(soak, names, args.minutes)
        violation = None
    except KeyboardInterrupt:
        print('Interrupted', flush=True)
        violation = None
    except Violation as error:
        violation = error
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        soak.kill_all()
        print(soak.report(), flush=True)
        if violation:
            shutil.copytree(soak.disk, kept, symlinks=True)
            print('VIOLATED (--seed=%d, kept in %s): %s' % (args.seed, kept, violation), flush=True)
    return 1 if violation else 0


def _handle_signals():
    """Lets signals end the soak, but for a SIGHUP that nohup keeps away; what it starts gets the
    usual handlers in any case."""
    kept_away = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number,
            (lambda *_: None)
            if number == signal.SIGHUP and kept_away
            else signal.default_int_handler,
        )


def main():
    """Parses the command line and makes the place; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(10**6))
    parser.add_argument(
        '--faults', help='only these, with commas between them: %s' % ', '.join(FAULTS)
    )
    args = parser.parse_args()
    names = args.faults.split(',') if args.faults else list(FAULTS)
    if not set(names) <= set(FAULTS):
        parser.error('--faults=%s: there are %s' % (args.faults, ', '.join(FAULTS)))
    with_mounts = _with_private_mounts()
    _handle_signals()
    base = tempfile.mkdtemp(prefix='soak-')
    disk = os.path.join(base, 'disk')
    os.mkdir(disk)
    has_small_disk = (
        with_mounts
        and subprocess.call(['mount', '-t', 'tmpfs', '-o', 'size=%d' % DISK_BYTES, 'soak', disk])
        == 0
    )
    if not has_small_disk:
        names = [name for name in names if name not in NEED_A_SMALL_DISK]
        print('Without a full disk: that needs root', flush=True)
    print('--seed=%d, in %s' % (args.seed, base), flush=True)
    try:
        status = _soak(base, names, args)
    finally:
        if has_small_disk:
            subprocess.check_call(['umount', '--lazy', disk])
    if status == 0:
        shutil.rmtree(base)
    return status


if __name__ == '__main__':
    sys.exit(main())
