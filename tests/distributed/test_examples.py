"""Shell code of the Slurm and Kubernetes examples, with fakes of srun, scontrol and python."""

import os
import re
import stat
import subprocess
import textwrap

import pytest

from tests.helpers import programs

DOCS = os.path.join(programs.ROOT, 'docs', 'examples')
TRAINER = 'scripts/cifar10_distributed_train.py'


def _read(name):
    with open(os.path.join(DOCS, name)) as page:
        return page.read()


@pytest.fixture
def run_shell(tmp_path):
    """Run shell code with fake programs first on the PATH; the fake `python` prints its arguments.

    Returns lines and status.
    """

    def make(name, code):
        path = tmp_path / name
        path.write_text('#!/bin/bash\n' + code)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(command, fakes=(), **environment):
        make('python', 'printf "%s " "$@"; echo\n')
        for name, text in fakes:
            make(name, text)
        (tmp_path / 'venv' / 'bin').mkdir(parents=True, exist_ok=True)
        (tmp_path / 'venv' / 'bin' / 'activate').write_text('')
        environment = dict(
            os.environ, PATH=f'{tmp_path}:{os.environ["PATH"]}', HOME='/home/me', **environment
        )
        done = subprocess.run(
            command,
            env=environment,
            cwd=str(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
            timeout=20,
        )
        return done.stdout.splitlines(), done.returncode

    return run


SLURM = ['bash', os.path.join(DOCS, 'slurm.sh'), '--recipe=fast', '--num_gpus=2']
# which drops the option
SRUN = 'for i in 0 1 2 3; do [ $i -ge $SLURM_NTASKS ] || SLURM_PROCID=$i "${@:2}" || exit; done\n'
SCONTROL = 'printf "n1\\nn2\\n"\n'


def test_slurm(run_shell):
    workers = 'n1:29980,n1:29981,n2:29980,n2:29981'
    (download, *tasks), status = run_shell(
        SLURM,
        [('scontrol', SCONTROL), ('srun', SRUN)],
        SLURM_NTASKS_PER_NODE='2',
        SLURM_NTASKS='4',
        SLURM_JOB_ID='1999',
        SLURM_JOB_NODELIST='n[1-2]',
    )
    assert (
        status == 0
        and download == 'scripts/cifar10_dataset.py download --data_dir=/home/me/cifar10_data '
    )
    assert tasks == [
        f'{TRAINER} --worker_hosts={workers} --job_name=worker --task_index={index} --data_dir=/home/me/cifar10_data '
        '--train_dir=/home/me/cifar10_train '
        '--recipe=fast --num_gpus=2 '
        for index in range(4)
    ]
    assert '\nsrun --kill-on-bad-exit=1 ' in _read('slurm.sh')


def test_kubernetes(run_shell):
    yaml = _read('kubernetes.yaml')
    code = textwrap.dedent(
        re.search(r'args:\n +- \|\n(.*?)      volumes:', yaml, re.DOTALL).group(1)
    )
    (line,), status = run_shell(['sh', '-c', code], JOB_COMPLETION_INDEX='1')
    assert status == 0 and line.startswith(
        f'{TRAINER} --job_name=worker --task_index=1 --worker_hosts='
    )
    hosts = re.search('--worker_hosts=([^ ]*)', line).group(1).split(',')
    assert hosts == [f'cifar10-{i}.cifar10:2222' for i in range(2)]
    assert re.findall('(?:completions|parallelism): (.*)', yaml) == ['2', '2']
    policy = re.search(
        r'action: FailJob.*\n +onExitCodes: \{containerName: (\w+), operator: In, values: \[1, 2\]\}\n',
        yaml,
    )
    assert f'- name: {policy.group(1)}\n' in yaml and 'restartPolicy: Never' in yaml
