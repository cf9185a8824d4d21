"""Remedies for unknown flags, against the flags that --help lists."""

import glob
import os
import re

import pytest

from cifar10.cli import flag_remedies
from tests.helpers import programs

SCRIPTS = sorted(os.path.basename(path)[: -len('.py')] for path in glob.glob(programs.path('*')))
LAUNCHER, TRAINER = 'cifar10_launch', 'cifar10_distributed_train'
OTHER_NAMES = sorted(
    {name for names in flag_remedies._OTHER_NAMES.values() for name in names.split()}
)
TRAINERS = ['cifar10_train', 'cifar10_multi_gpu_train', TRAINER]


@pytest.fixture(scope='module')
def listed():
    """A dict from each script to the set of the flags that its --help lists."""
    return {
        script: set(
            re.findall(r'^  --(?:\[no\])?(\w+)', programs.call(script, '--help')[1], re.MULTILINE)
        )
        for script in SCRIPTS
    }


@pytest.mark.parametrize('script', SCRIPTS)
def test_each_remedy_names_a_flag_of_its_script(listed, script):
    """Tried are all names of both tables."""
    names = set(OTHER_NAMES).union(*flag_remedies._SCRIPTS.values())
    for name in sorted(names - listed[script]):
        remedy = flag_remedies.find_remedy(f'--{name}=1', listed[script], script == LAUNCHER)
        pattern = r'(leave it out, or )?(?:use|put) (?:(\w+)\.py )?--(\w+)=1( after --)?'
        is_absent, other, flag, is_after = re.fullmatch(pattern, str(remedy)).groups()
        assert (
            bool(is_absent) == bool(other)
            and flag in listed[other or (TRAINER if is_after else script)]
        )
        if is_absent:  # no flag of this script has the name
            assert other != script and flag not in listed[script]


@pytest.mark.parametrize('name', OTHER_NAMES)
def test_no_other_suggestion_appears(name):
    status, stdout, stderr = programs.call('cifar10_results', f'--{name}=1')
    assert (status, stdout) == (2, '')
    assert re.fullmatch(
        f'cifar10_results.py: error: --{name}=1 is unknown: .*use .*--.*=1; --help lists the flags\n',
        stderr,
    )


# scripts, flags that have been renamed or that other programs have, flags of the scripts
@pytest.mark.parametrize(
    'scripts, given, flags',
    [
        (TRAINERS, 'learning_rate lr learning-rate', 'initial_learning_rate'),
        (TRAINERS + ['cifar10_classic'], 'bs batch-size', 'batch_size'),
        (TRAINERS, 'wd weight_decay', 'fc_weight_decay'),
        (TRAINERS, 'num_epochs max_epochs', 'epochs'),
        (TRAINERS, 'steps num_steps train_steps', 'max_steps'),
        (
            TRAINERS,
            'log_dir logdir model_dir output_dir checkpoint_path checkpoint_dir',
            'train_dir',
        ),
        (TRAINERS, 'data data_path', 'data_dir'),
        (TRAINERS[1:] + ['cifar10_classic', 'cifar10_benchmark'], 'gpus ngpus', 'num_gpus'),
        (['cifar10_eval', 'cifar10_predict'], 'checkpoint_path', 'checkpoint'),
        (['cifar10_eval', 'cifar10_export'], 'model_dir train_dir', 'checkpoint_dir'),
        (['cifar10_eval'], 'log_dir output_dir', 'eval_dir'),
        (['cifar10_export'], 'output_dir', 'export_dir'),
        (['cifar10_benchmark'], 'num_steps max_steps', 'steps'),
        # flags of earlier versions
        (
            TRAINERS,
            'checkpoint_steps eval_steps input_threads label summary_steps',
            'save_checkpoint_steps eval_every num_preprocess_threads label_mode save_summaries_steps',
        ),
        (
            ['cifar10_eval'],
            'figures predictions views',
            'figures_dir predictions_file num_views',
        ),
        (['cifar10_dataset'], 'contact_sheet examples', 'contact_sheet_file num_examples'),
        (['cifar10_benchmark'], 'json trace', 'json_file trace_file'),
        (['cifar10_results'], 'plot reach', 'plot_file target_precision'),
        (['cifar10_predict'], 'saved_model', 'saved_model_dir'),
        ([LAUNCHER], 'restarts', 'max_restarts'),
        (['cifar10_export'], 'tflite', 'tflite_file'),
    ],
)
def test_the_flag_of_the_script(scripts, given, flags):
    flags = flags.split() if ' ' in flags else [flags] * len(given.split())
    for script in scripts:
        for name, flag in zip(given.split(), flags):
            assert programs.call(script, f'--{name}=1') == (
                2,
                '',
                f'{script}.py: error: --{name}=1 is unknown: use --{flag}=1; --help lists the flags\n',
            )


@pytest.mark.parametrize(
    'command, remedy',
    [
        (
            'cifar10_train --num_gpus=2',
            'leave it out, or use cifar10_multi_gpu_train.py --num_gpus=2',
        ),
        ('cifar10_train --run_once', 'leave it out, or use cifar10_eval.py --run_once'),
        (
            'cifar10_train --package-modules',
            'leave it out, or use cifar10_run.py --package_modules',
        ),
        (
            'cifar10_classic --lr=0.1',
            'leave it out, or use cifar10_train.py --initial_learning_rate=0.1',
        ),
        ('cifar10_launch --gpus=2', 'put --num_gpus=2 after --'),
        ('cifar10_launch --mode=async', 'put --mode=async after --'),
        ('cifar10_train --data-path=a=b', 'use --data_dir=a=b'),
    ],
)
def test_a_flag_of_another_script(command, remedy):
    script, argument = command.split()
    assert programs.call(script, argument)[2] == (
        f'{script}.py: error: {argument} is unknown: {remedy}; --help lists the flags\n'
    )


@pytest.mark.parametrize('script', SCRIPTS)
def test_help_has_other_names(script):
    expected = programs.call(script, '--help')
    assert expected[0] == 0 and expected[1]
    for name in ('-h', '-help'):
        assert programs.call(script, name) == expected
