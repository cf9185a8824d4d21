"""The examples of docs/distributed.md for Kubernetes and Slurm: the TF_CONFIG that their shell code makes for each task."""
import os
import re
import stat
import subprocess
import textwrap

import pytest

from cifar10.distributed import cluster
from cifar10.distributed.cluster import Task
from tests.helpers import programs

with open(os.path.join(programs.ROOT, 'docs', 'distributed.md')) as page:
    TEXT = page.read()


def _block(language):
    return re.search('```%s\n(.*?)```' % language, TEXT, re.DOTALL).group(1)


@pytest.fixture
def run_shell(tmp_path):
    """Runs shell code with programs of our own first on the PATH; `python` there prints TF_CONFIG."""
    def make(name, code):
        path = tmp_path / name
        path.write_text('#!/bin/bash\n' + code)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(code, fakes=(), shell='sh', **environment):
        make('python', 'printf "%s\\0" "$TF_CONFIG"\n')
        for name, text in fakes:
            make(name, text)
        environment = dict(os.environ, PATH='%s:%s' % (tmp_path, os.environ['PATH']), **environment)
        output = subprocess.run([shell, '-c', code], env=environment, stdout=subprocess.PIPE, check=True, timeout=20).stdout
        return [cluster.from_tf_config(text) for text in output.decode().split('\0')[:-1]]
    return run


@pytest.mark.parametrize('index, task', [(0, Task('ps', 0)), (1, Task('worker', 0)), (2, Task('worker', 1))])
def test_kubernetes(run_shell, index, task):
    yaml = _block('yaml')
    code = textwrap.dedent(re.search(r'args:\n +- \|\n(.*?)      volumes:', yaml, re.DOTALL).group(1))
    assert 'completions: 3' in yaml and 'parallelism: 3' in yaml
    (found, found_task), = run_shell(code, JOB_COMPLETION_INDEX=str(index))
    assert (found.ps, found.worker) == (('cifar10-0.cifar10:2222',), ('cifar10-1.cifar10:2222', 'cifar10-2.cifar10:2222'))
    assert found_task == task
    found.check(found_task)


def test_slurm(run_shell):
    srun = 'for i in 0 1 2; do SLURM_PROCID=$i "${@:2}"; done\n'  # without the option
    found = run_shell(_block('bash'), [('scontrol', 'printf "n1\\nn2\\nn3\\n"\n'), ('srun', srun)], shell='bash',
                      SLURM_JOB_NODELIST='n[1-3]')
    assert [task for _, task in found] == [Task('worker', 0), Task('worker', 1), Task('worker', 2)]
    assert {each for each, _ in found} == {cluster.Cluster((), ('n1:2222', 'n2:2222', 'n3:2222'))}


def test_slurm_starts_again_but_not_after_a_mistake(run_shell, tmp_path):
    code = re.search(r"bash -c '\n(.*?)'\n$", _block('bash'), re.DOTALL).group(1)
    count = 'echo >> %s/starts\nn=$(wc -l < %s/starts)\n'\
        '[ $n -eq 3 ] && exit 1\n[ $n -eq 2 ] && exit 137\nexit 75\n' % (tmp_path, tmp_path)
    with pytest.raises(subprocess.CalledProcessError) as error:
        run_shell(code, [('python', count)], shell='bash', WORKERS='"a:1"', SLURM_PROCID='0')
    assert error.value.returncode == 1
    assert (tmp_path / 'starts').read_text() == '\n' * 3
