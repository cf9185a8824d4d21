"""Subcommands of the benchmark: arithmetic, flags, errors, whole measurements."""

import dataclasses
import json
import os
import re

import pytest

from cifar10.benchmark import subcommands
from cifar10.benchmark.measurements import StepCounts
from cifar10.config import CLASSIC, RunSettings
from cifar10.data import dataset
from cifar10.training import create_job
from tests.helpers import programs

CPU_JOB = create_job(
    dataset.WITHOUT_FILES,
    dataclasses.replace(CLASSIC, batch_size=8, compute_dtype='auto'),
    ['/cpu:0', '/cpu:1'],
    RunSettings(inter_op_threads=3),
)


def _settings(steps=StepCounts(0, 0), scripts_dir=''):
    return subcommands.BenchmarkSettings(CPU_JOB, steps, scripts_dir)


def test_table():
    """Three digits, or all digits of the integer part."""
    rounds = {
        'ours': {'ms': [2, 1234.5, 0.12345], 's': [99.96]},
        'reference': {'ms': [1, 10, 2], 's': [50]},
    }
    assert subcommands.table(rounds).splitlines() == [
        '|  | ours | reference | ours / reference |',
        '| --- | --- | --- | --- |',
        '| ms | 2 (0.123 to 1234) | 2 (1 to 10) | 2 (0.0617 to 123) |',
        '| s | 100 (100 to 100) | 50 (50 to 50) | 2 (2 to 2) |',
    ]
    assert subcommands.table({'ours': {'s': [1]}}).splitlines()[0] == '|  | ours |'


@pytest.mark.parametrize(
    'args, status, complaint',
    [
        ([], 2, 'the arguments must be input|step|train, not '),
        (['train', '--baseline'], 1, '--baseline has no effect on train: leave it out'),
        (
            ['step', '--baseline', '--network=resnet'],
            1,
            "--baseline is of the books' network: leave",
        ),
    ],
)
def test_mistake_gets_one_clear_line(tmp_path, data_dir, args, status, complaint):
    found, _, stderr = programs.call(
        'cifar10_benchmark', *[arg.format(tmp=tmp_path, data=data_dir) for arg in args]
    )
    assert stderr.startswith('cifar10_benchmark.py: error: ' + complaint.format(tmp=tmp_path))
    assert stderr.count('\n') == 1 and found == status


def test_trainer_gets_flags_and_is_timed(tmp_path, monkeypatch):
    """The trainer only prints: 4 seconds from step 12 to step 28."""
    script = 'cifar10_multi_gpu_train.py'
    (tmp_path / script).write_text(
        f'import json, sys\njson.dump(sys.argv, open({str(tmp_path / "argv")!r}, "w"))\n'
        'for i in range(1, 8): print("2026-01-01 00:00:0%d.000000: step %d, " % (i, 4 * i))'
    )
    settings = _settings(steps=StepCounts(12, 16), scripts_dir=str(tmp_path))
    metrics = subcommands.measure_train('ours', settings)
    assert (metrics['ms per step'], metrics['examples/sec']) == (250, 64)
    with open(str(tmp_path / 'argv')) as argv:
        path, data_dir, train_dir, *others = json.load(argv)
    assert (path, data_dir) == (str(tmp_path / script), '--data_dir=' + CPU_JOB.dataset.directory)
    assert re.match('--train_dir=.', train_dir) and not os.path.exists(train_dir.split('=')[1])
    expected = (
        '--network=model --num_gpus=2 --batch_size=8 --max_steps=28 --log_frequency=2 --save_summaries_steps=100 '
        '--save_checkpoint_steps=16 --compute_dtype=auto --intra_op_threads=0 --inter_op_threads=3 '
        '--eval_every=0'
    )
    assert others == expected.split()


def test_flags_reach_the_measure(data_dir, monkeypatch):
    """A fake measurement records its arguments."""
    requests = []

    def measure(formulation, settings):
        requests.append((formulation, settings))
        return {'ms': len(requests)}

    monkeypatch.setitem(subcommands.MEASURES, 'input', measure)
    args = [
        '--data_dir=' + data_dir,
        '--num_gpus=2',
        '--batch_size=16',
        '--compute_dtype=auto',
        '--intra_op_threads=5',
        '--inter_op_threads=6',
        '--warmup_steps=3',
        '--steps=4',
    ]
    status, stdout, stderr = programs.call(
        'cifar10_benchmark', 'input', '--baseline', '--rounds=2', *args
    )
    job = create_job(
        dataset.read(data_dir),
        dataclasses.replace(CLASSIC, batch_size=16, compute_dtype='auto'),
        ['/cpu:0', '/cpu:1'],
        RunSettings(intra_op_threads=5, inter_op_threads=6),
    )
    expected = subcommands.BenchmarkSettings(
        job, StepCounts(3, 4), os.path.join(programs.ROOT, 'scripts')
    )
    assert requests == [('ours', expected), ('reference', expected)] * 2
    assert status == 0 and stderr.endswith('cifar10_benchmark.py: Round 2 of 2: reference\n')
    assert stdout.endswith('\n| ms | 2 (1 to 3) | 3 (2 to 4) | 0.625 (0.5 to 0.75) |\n')


@pytest.mark.slow
@pytest.mark.parametrize('subcommand', ['input', 'step'])
def test_a_measurement(data_dir, subcommand):
    """In a new process, because TensorFlow must not write to stderr."""
    flags = '--num_gpus=2 --rounds=1 --batch_size=16 --warmup_steps=1 --steps=2'.split()
    status, stdout, stderr = programs.run(
        'cifar10_benchmark', subcommand, *flags, f'--data_dir={data_dir}'
    )
    assert (status, stderr) == (0, 'cifar10_benchmark.py: Round 1 of 1: ours\n')
    speed = float(re.search(r'\| examples/sec \| (\S+) \(', stdout).group(1))
    assert speed > 0
    if subcommand == 'input':
        step = float(re.search(r'\| examples/sec of the step \| (\S+) \(', stdout).group(1))
        ratio = float(re.search(r'\| input / step \| (\S+) \(', stdout).group(1))
        assert ratio == pytest.approx(speed / step, rel=0.02)


@pytest.mark.slow
def test_signal_ends_all_that_it_started(tmp_path, data_dir):
    process = programs.start(
        'cifar10_benchmark',
        'train',
        '--data_dir=' + data_dir,
        '--batch_size=8',
        '--steps=1000000',
        TMPDIR=str(tmp_path),
    )
    assert process.stderr.readline() == 'cifar10_benchmark.py: Round 1 of 5: ours\n'
    while not list(tmp_path.glob('*/*')):  # the trainer has not written yet
        assert process.poll() is None
    process.terminate()
    _, stderr = process.communicate(timeout=60)  # waits for all writers
    expected = 143, 'cifar10_benchmark.py: interrupted (SIGTERM)\n'
    assert (process.returncode, stderr) == expected and not list(tmp_path.iterdir())
