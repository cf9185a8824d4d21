"""The scripts without the modules that Python lacks on Windows."""

import os

import pytest

from tests.helpers import checkpoints, pictures, programs

# Remove names that Python lacks on Windows, except those that the standard library or TensorFlow
# need here.
_PREAMBLE = """
import os, shutil, signal, sys
shutil._use_fd_functions = False  # as on Windows
for name in ('fcntl', 'grp', 'pwd', 'resource', 'termios'):
    sys.modules[name] = None
for name in ('fork', 'getuid', 'killpg', 'mkfifo', 'O_NOFOLLOW', 'O_NONBLOCK', 'sched_getaffinity', 'sched_setaffinity',
             'set_blocking', 'wait4'):
    if hasattr(os, name):
        delattr(os, name)
for name in ('SIGHUP', 'SIGKILL', 'SIGPIPE', 'SIGSTOP', 'pthread_sigmask'):
    delattr(signal, name)
"""


@pytest.mark.slow
def test_every_script_works(tmp_path, data_dir):
    """In one process; the runner is last, because it replaces the module `tensorflow`."""
    checkpoints.save(tmp_path, 1)
    (tmp_path / 'image.png').write_bytes(pictures.encoded(pictures.noise(40, 50), 'PNG'))
    (tmp_path / 'program.py').write_text('import cifar10\nprint(cifar10.NUM_CLASSES)\n')
    data = ['--dataset=synthetic', '--data_dir=' + data_dir]
    training = data + ['--max_steps=2', '--batch_size=8']
    commands = [
        ['cifar10_train', f'--train_dir={tmp_path}/one'] + training,
        ['cifar10_multi_gpu_train', f'--train_dir={tmp_path}/two', '--num_gpus=2'] + training,
        ['cifar10_classic', f'--train_dir={tmp_path}/classic'] + training,
        [
            'cifar10_distributed_train',
            '--job_name=worker',
            '--task_index=1',
            '--worker_hosts=a:1',
            '--ps_hosts=b:1',
        ]
        + training,
        [
            'cifar10_eval',
            f'--checkpoint_dir={tmp_path}',
            f'--eval_dir={tmp_path}/eval',
            '--run_once',
        ]
        + data,
        ['cifar10_predict', f'--checkpoint_dir={tmp_path}', str(tmp_path / 'image.png')],
        ['cifar10_export', f'--checkpoint_dir={tmp_path}', f'--export_dir={tmp_path}/exported'],
        ['cifar10_dataset', 'verify'] + data,
        ['cifar10_benchmark', 'towers', '--batch_size=6'],
        ['cifar10_results', f'--runs=run:{tmp_path}/nowhere:{tmp_path}'],
        ['cifar10_launch', '--help'],
        ['cifar10_run', f'{tmp_path}/program.py'],
    ]
    assert sorted(words[0] + '.py' for words in commands) == sorted(
        name for name in os.listdir(os.path.join(programs.ROOT, 'scripts')) if name.endswith('.py')
    )
    results = programs.call_in_one_process(commands, preamble=_PREAMBLE)
    found = dict(zip([words[0] for words in commands], map(tuple, results)))
    for script, last_words in [
        ('cifar10_train', 'The evaluation took'),
        ('cifar10_multi_gpu_train', 'The evaluation took'),
        ('cifar10_classic', 'using /cpu:0'),
        ('cifar10_eval', ': precision @ 1 = '),
        ('cifar10_dataset', '300 training and 50 test examples of '),
        ('cifar10_export', 'Exported '),
        ('cifar10_launch', '--num_ps: '),
        ('cifar10_run', '10\n'),
    ]:
        status, stdout, stderr = found[script]
        assert (status, stderr) == (0, '') and last_words in stdout, found[script]
    status, stdout, stderr = found['cifar10_predict']
    assert (
        status == 0
        and 'image.png: ' in stdout
        and stderr.startswith('The checkpoint has no record of its class names')
    )
    for script, complaint in [
        ('cifar10_distributed_train', 'There is no worker 1: '),
        ('cifar10_benchmark', '--batch_size must be a multiple of 4'),
        ('cifar10_results', 'nowhere does not exist: '),
    ]:
        status, _, stderr = found[script]
        assert status == 1 and complaint in stderr and stderr.count('\n') == 1, (script, stderr)
