"""Assignment of GPUs by a launcher, with environment variables and a fake nvidia-smi."""

import re

import pytest

from cifar10.distributed import launcher
from tests.helpers.fake_tasks import launch

_TELLS = "print(os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ.get('CUDA_DEVICE_ORDER'))"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """machine(source, **environment) has an nvidia-smi with this source in sh, or none."""

    def make(source=None, **environment):
        for name in ('CUDA_VISIBLE_DEVICES', 'CUDA_DEVICE_ORDER'):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        programs = tmp_path / 'bin'
        programs.mkdir()
        if source is not None:
            (programs / 'nvidia-smi').write_text('#!/bin/sh\n' + source)
            (programs / 'nvidia-smi').chmod(0o755)
        monkeypatch.setenv('PATH', str(programs))

    return make


def _with(num_gpus):
    indexes = '\n'.join(map(str, range(num_gpus)))
    return f'test "$*" = "--query-gpu=index --format=csv,noheader" && echo "{indexes}"'


@pytest.mark.parametrize(
    'num_gpus, num_ps, num_workers, flags, gpus, lines',
    [
        (
            8,
            1,
            2,
            ['--num_gpus=12', '-num_gpus', '3', '--num_gpus=2x', '--no_num_gpus=4'],
            ['0,1,2', '3,4,5'],
            ['GPUs: worker 0 gets 0, 1, 2; worker 1 gets 3, 4, 5'],
        ),
        (
            2,
            1,
            3,
            [],
            ['0', '1', '0'],
            [
                'GPUs: worker 0 gets 0; worker 1 gets 1; worker 2 gets 0',
                'The workers request 3 GPUs, but there are 2: workers share GPUs',
            ],
        ),
    ],
)
def test_worker_i_gets_gpu_i(
    machine, trainer, capsys, num_gpus, num_ps, num_workers, flags, gpus, lines
):
    machine(_with(num_gpus))
    assert launch(trainer(_TELLS), num_ps, num_workers, flags=flags) == 0
    told = capsys.readouterr().out
    found = dict(re.findall(r'\[(.*)\] (.*)', told))
    assert found == dict(
        {f'worker {index}': own + ' PCI_BUS_ID' for index, own in enumerate(gpus)},
        **{f'ps {index}': '-1 PCI_BUS_ID' for index in range(num_ps)},
    )
    assert [line for line in told.splitlines() if not line.startswith('[')] == lines


def test_gpus_that_the_user_makes_visible(machine, trainer, capsys):
    machine(_with(8), CUDA_VISIBLE_DEVICES='3, GPU-8f6d')
    assert launch(trainer(_TELLS), 1, 2) == 0
    found = dict(re.findall(r'\[(.*)\] (.*)', capsys.readouterr().out))
    assert found == {'worker 0': '3 None', 'worker 1': 'GPU-8f6d None', 'ps 0': '-1 None'}


@pytest.mark.parametrize('visible, gpus', [('MIG-5a/1/0,-1,0', ['MIG-5a/1/0']), ('', [])])
def test_malformed_entries(machine, visible, gpus):
    machine(_with(8), CUDA_VISIBLE_DEVICES=visible)
    assert launcher._visible_gpus() == gpus


@pytest.mark.parametrize('source', [None, 'echo 0; exit 9', 'echo No devices were found'])
def test_a_machine_without_gpus(machine, source):
    machine(source)
    assert launcher._visible_gpus() == []


def test_workers_without_gpus(machine, trainer, capsys):
    machine()
    assert launch(trainer(_TELLS), 0, 1) == 0
    assert capsys.readouterr().out == '[worker 0] None None\n'
