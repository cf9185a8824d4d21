"""What a trainer prints before it starts."""

import html
import re
import tempfile
from types import SimpleNamespace

import pytest
from tensorboard import plugin_util

from cifar10 import summaries
from cifar10.cli import given_job
from cifar10.data import dataset
from cifar10.hparams import BEST, CLASSIC, FAST, Intervals
from cifar10.runs import machine
from cifar10.runs.machine import Threads
from cifar10.training import Job
from tests.helpers import events


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """The same machine for every test."""
    monkeypatch.setattr(machine, 'num_cores', lambda: 2)


def _plan(capsys, job, first_step=0):
    """The printed lines, by what comes before the colon."""
    with tempfile.TemporaryDirectory() as train_dir:
        given_job.print_plan(job, SimpleNamespace(path=train_dir, first_step=first_step))
    printed = {}
    for line in capsys.readouterr().out.splitlines()[1:]:  # the first one tells the versions
        name, text = line.split(': ', 1)
        printed.setdefault(name, []).append(text)
    return printed


def test_the_whole_plan(data_dir, capsys):
    given_job.print_plan(
        Job(
            dataset.read(data_dir),
            50000,
            devices=['/cpu:0', '/cpu:1'],
            given_threads=Threads(prefetch=3),
        ),
        None,
    )
    first, *others = capsys.readouterr().out.splitlines()
    assert re.match(
        r'cifar10 \d+\.\d+\.\d+, Python \d+\.\d+\.\d+, TensorFlow \d+\.\d+\.\d+; .* \(cores: 2\)',
        first,
    )
    assert others == [
        'Data: 50000 examples of disc, ring, square, triangle, cross, horizontal_stripes, vertical_stripes, diagonal_stripes, '
        'checkerboard, dots in %s/cifar-10-batches-bin' % data_dir,
        'Devices: /cpu:0, /cpu:1',
        'Speed: nothing is gained by 2 CPU devices, because they share the same cores: a step has 2 times the examples of one tower, '
        'and takes about 2 times as long',
        'Weights: on /cpu:0 (--variable_strategy=cpu)',
        'Threads: 1 per operation (intra-op), all cores across operations (inter-op), 3 for the input',
        'Batch: 128 examples per tower (slices: 2), 256 examples per step',
        'Epoch: 50000 examples, 195.3 steps',
        'Recipe: classic, with the hyperparameters of the books',
        'Learning rate: 0.1, then 0.01 from epoch 350 (step 68360)',
        'Learning rate: not scaled, although a step takes 2 times the batch of the recipe (--lr_scaling=linear would)',
        'End: step 1000000, epoch 5120.0',
        'Evaluation: the last checkpoint on the test images (--eval_steps=1000 would evaluate every 1000 steps as well)',
    ]


@pytest.mark.parametrize(
    'eval_steps, text',
    [(0, 'none \\(--eval_steps=0\\)'), (7, 'every 7 steps and at the end, .* training waits .*')],
)
def test_when_it_is_evaluated(data_dir, capsys, eval_steps, text):
    (line,) = _plan(
        capsys, Job(dataset.read(data_dir), 300, intervals=Intervals(eval_steps=eval_steps))
    )['Evaluation']
    assert re.fullmatch(text, line)


@pytest.mark.parametrize(
    'devices, per_tower, lines',
    [
        (['/cpu:0'], 1, []),
        (['/gpu:0', '/gpu:1'], 1, []),
        (
            ['/cpu:%d' % i for i in range(4)],
            1,
            [
                'nothing is gained by 4 CPU devices, because they share the same cores: a step has 4 '
                'times the examples of one tower, and takes about 4 times as long'
            ],
        ),
        (
            ['/cpu:0', '/cpu:1'],
            2,
            ['nothing is gained by 2 CPU devices, because they share the same cores'],
        ),
    ],
)
def test_what_is_gained_by_devices(data_dir, capsys, devices, per_tower, lines):
    assert (
        _plan(
            capsys, Job(dataset.read(data_dir), 300, devices=devices, devices_per_tower=per_tower)
        ).get('Speed', [])
        == lines
    )


def test_classes_without_names(tmp_path, capsys):
    assert _plan(capsys, Job(dataset.read(str(tmp_path)), 7))['Data'] == [
        '7 examples of unnamed classes in %s' % (tmp_path / 'cifar-10-batches-bin')
    ]


@pytest.mark.parametrize(
    'devices, given, line',
    [
        (
            ['/gpu:0'],
            Threads(),
            'all cores per operation (intra-op), all cores across operations (inter-op), 2 for the input',
        ),
        (
            ['/cpu:0'],
            Threads(4, 2, 3),
            '4 per operation (intra-op), 2 across operations (inter-op), 3 for the input',
        ),
    ],
)
def test_threads(data_dir, capsys, devices, given, line):
    assert _plan(capsys, Job(dataset.read(data_dir), 300, devices=devices, given_threads=given))[
        'Threads'
    ] == [line]


def test_a_resumed_run(data_dir, capsys):
    printed = _plan(capsys, Job(dataset.read(data_dir), 50000, max_steps=200000), 136719)
    assert printed['Learning rate'] == ['0.01, then 0.001 from epoch 700 (step 273438)']
    assert printed['End'] == ['step 200000, epoch 512.0']
    before = _plan(capsys, Job(dataset.read(data_dir), 50000, max_steps=200000), 136718)
    assert before['Learning rate'] == ['0.1, then 0.01 from epoch 350 (step 136719)']


def test_a_linear_schedule(data_dir, capsys):
    printed = _plan(capsys, Job(dataset.read(data_dir), 50000, FAST))
    assert printed['Learning rate'] == [
        'rises to 0.05 over 3 epochs, then falls to 0 at the end of epoch 32 (step 12500)'
    ]
    assert printed['End'] == ['step 12500, epoch 32.0']


@pytest.mark.parametrize(
    'hparams, num_towers, line',
    [
        (
            CLASSIC._replace(lr_scaling='linear'),
            1,
            'scaled by 1, because a step takes 1 times the batch of the recipe (--lr_scaling=linear)',
        ),
        (
            CLASSIC._replace(lr_scaling='linear'),
            4,
            'scaled by 4, because a step takes 4 times the batch of the recipe (--lr_scaling=linear)',
        ),
        (
            CLASSIC._replace(batch_size=32),
            1,
            'not scaled, although a step takes 0.25 times the batch of the recipe (--lr_scaling=linear would)',
        ),
        (CLASSIC._replace(batch_size=32), 4, None),
        (CLASSIC, 1, None),
    ],
)
def test_scaling(data_dir, capsys, hparams, num_towers, line):
    job = Job(dataset.read(data_dir), 50000, hparams, ['/cpu:%d' % i for i in range(num_towers)])
    assert _plan(capsys, job)['Learning rate'][1:] == ([line] if line else [])


def test_the_scaled_rate(data_dir, capsys):
    job = Job(
        dataset.read(data_dir),
        50000,
        CLASSIC._replace(lr_scaling='linear'),
        ['/cpu:%d' % i for i in range(4)],
    )
    assert _plan(capsys, job)['Learning rate'][0] == '0.4, then 0.04 from epoch 350 (step 34180)'
    job = job._replace(hparams=FAST._replace(lr_scaling='linear'))
    assert _plan(capsys, job)['Learning rate'][0].startswith('rises to 0.2 over 3 epochs')


def test_how_a_recipe_differs(data_dir, capsys):
    """A hyperparameter that nothing reads is no difference."""
    assert _plan(capsys, Job(dataset.read(data_dir), 50000, BEST._replace(optimizer='momentum')))[
        'Recipe'
    ] == [
        'best; differs from classic in: optimizer momentum (classic: gradient_descent), '
        'initial_learning_rate 0.05 (classic: 0.1), momentum 0.9 (classic: unused), schedule linear (classic: staircase), '
        'warmup_epochs 5.0 (classic: unused), epochs 100.0 (classic: inf), fc_weight_decay 0.0 (classic: 0.004), '
        'label_smoothing 0.1 (classic: 0.0), moving_average_fraction 0.02 (classic: 0.0), contrast 0.0 (classic: 0.8)'
    ]
    assert _plan(capsys, Job(dataset.read(data_dir), 50000, CLASSIC._replace(batch_size=64)))[
        'Recipe'
    ] == ['classic; differs from classic in: batch_size 64 (classic: 128)']
    assert _plan(capsys, Job(dataset.read(data_dir), 50000, CLASSIC._replace(momentum=0.5)))[
        'Recipe'
    ] == ['classic, with the hyperparameters of the books']


@pytest.mark.parametrize(
    'profile_step, first_step, text',
    [
        (None, 0, []),
        (21, 20, ['of step 21 (--profile_step)']),
        (50, 20, ['of step 50 (--profile_step)']),
        (51, 20, ['none, because the run ends before step 51 (--profile_step)']),
        (20, 20, ['none, because step 20 has been made already (--profile_step)']),
    ],
)
def test_which_step_is_traced(data_dir, capsys, profile_step, first_step, text):
    job = Job(
        dataset.read(data_dir), 300, max_steps=50, intervals=Intervals(profile_step=profile_step)
    )
    assert _plan(capsys, job, first_step).get('Trace', []) == text


def _texts(directory):
    """The steps and lines of the plans in the tab Text of TensorBoard, as HTML."""
    return [
        (step, plugin_util.markdown_to_safe_html(markdown))
        for step, markdown in events.texts(directory)['plan']
    ]


def test_the_plan_in_tensorboard(tmp_path, data_dir, capsys):
    """What is printed, as it is, whatever Markdown would make of it; a resumed run keeps the plan
    of its first start."""
    odd = tmp_path / 'a *b* __c__ <i> | `d`'
    odd.symlink_to(data_dir)
    printed = []
    for first_step in (0, 20, 50):
        with summaries.writer(str(tmp_path), first_step):
            pass
        given_job.print_plan(
            Job(dataset.read(str(odd)), 300, max_steps=50),
            SimpleNamespace(path=str(tmp_path), first_step=first_step),
            'Cluster: two',
        )
        printed.append((first_step, capsys.readouterr().out))
    shown = [
        (step, html.unescape(re.sub(r'</?(pre|code)>', '', text)))
        for step, text in _texts(tmp_path)
    ]
    assert max(len(line) for _, text in shown for line in text.splitlines()) <= 120
    shown = [(step, text.replace('\n    ', ' ')) for step, text in shown]
    assert shown == printed[:2]  # at step 50 there was nothing to do
    assert all(text.startswith('Cluster: two\n') and str(odd) in text for _, text in shown)


def test_a_worker_that_is_not_chief_only_prints(data_dir, capsys):
    given_job.print_plan(Job(dataset.read(data_dir), 300), None, 'Cluster: two')
    assert capsys.readouterr().out.startswith('Cluster: two\n')


@pytest.mark.parametrize('field', ['recipe', 'schedule', 'lr_scaling'])
def test_unknown_names(data_dir, field):
    with pytest.raises(ValueError, match='^Unknown %s: odd$' % field):
        given_job.print_plan(
            Job(dataset.read(data_dir), 300, CLASSIC._replace(**{field: 'odd'})), None
        )
