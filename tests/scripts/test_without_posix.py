"""The scripts without the modules that Python lacks on Windows."""

import pytest

from tests.helpers import checkpoints, faults, programs

# Remove names that Python lacks on Windows, except those that the standard library or TensorFlow
# need here.
_PREAMBLE = """
import os, shutil, signal, sys
shutil._use_fd_functions = False  # as on Windows
for name in ('fcntl', 'grp', 'pwd', 'resource', 'termios'):
    sys.modules[name] = None
for name in ('fork', 'getuid', 'killpg', 'mkfifo', 'O_NOFOLLOW', 'O_NONBLOCK', 'sched_getaffinity', 'sched_setaffinity',
             'set_blocking'):
    if hasattr(os, name):
        delattr(os, name)
for name in ('SIGHUP', 'SIGKILL', 'SIGPIPE', 'SIGSTOP', 'pthread_sigmask'):
    delattr(signal, name)
"""


@pytest.mark.slow
def test_scripts_work(tmp_path, data_dir):
    """In one process; the runner is last, because it replaces the module `tensorflow`."""
    checkpoints.save(tmp_path, 1)
    (tmp_path / 'program.py').write_text('import cifar10\nassert cifar10.NUM_CLASSES == 10\n')
    commands = [
        ['cifar10_train', *faults.evaluated_job(data_dir, tmp_path / 'run', '--max_steps=1')],
        ['cifar10_export', f'--checkpoint_dir={tmp_path}', f'--export_dir={tmp_path}/exported'],
        ['cifar10_dataset', 'info', f'--data_dir={data_dir}'],
        ['cifar10_launch', '--help'],
        ['cifar10_benchmark', 'train', '--baseline'],
        ['cifar10_run', f'{tmp_path}/program.py'],
    ]
    results = programs.call_in_one_process(commands, preamble=_PREAMBLE)
    for result, expected, words in zip(
        results,
        [0, 0, 0, 0, 1, 0],
        [
            'The evaluation took',
            'Exported ',
            '300 training and 50 test examples of ',
            '--num_ps: ',
            '--baseline has no effect on train',
            '',
        ],
    ):
        status, stdout, stderr = result
        assert status == expected and words in (stderr if status else stdout), result
        assert stderr.count('\n') == status, result
