"""Remedies for unknown flags."""

import re

import pytest

from cifar10.cli import flag_remedies
from tests.helpers import programs

TRAINERS = ['cifar10_train', 'cifar10_multi_gpu_train', 'cifar10_distributed_train']


def test_each_remedy_names_a_flag_that_exists():
    """Against the flags that --help lists."""
    listed = {
        script: re.findall(
            r'^  --(?:\[no\])?(\w+)', programs.call(script, '--help')[1], re.MULTILINE
        )
        for script in programs.SCRIPTS
    }
    assert set(flag_remedies._OTHER_NAMES) <= set().union(*listed.values())
    for name, script in flag_remedies._OTHER_SCRIPTS.items():
        assert name in listed[script[: -len('.py')]]


# scripts, flags that other programs have, flag of the scripts
@pytest.mark.parametrize(
    'scripts, given, flag',
    [
        (TRAINERS, 'learning_rate lr learning-rate', 'initial_learning_rate'),
        (['cifar10_train', 'cifar10_classic'], 'bs batch-size', 'batch_size'),
        (TRAINERS[:1], 'wd', 'fc_weight_decay'),
        (TRAINERS[:1], 'num_epochs', 'epochs'),
        (TRAINERS[:1], 'steps train_steps', 'max_steps'),
        (TRAINERS[:1], 'log_dir logdir model_dir checkpoint_dir', 'train_dir'),
        (TRAINERS, 'summary_steps save_summary_steps', 'save_summaries_steps'),
        (TRAINERS[:1], 'save_steps', 'save_checkpoint_steps'),
        (TRAINERS[1:2] + ['cifar10_benchmark'], 'gpus', 'num_gpus'),
        (['cifar10_eval', 'cifar10_predict'], 'checkpoint_path', 'checkpoint'),
        (['cifar10_eval', 'cifar10_export'], 'model_dir train_dir', 'checkpoint_dir'),
        (['cifar10_eval'], 'log_dir', 'eval_dir'),
        (['cifar10_export'], 'output_dir', 'export_dir'),
        (['cifar10_benchmark'], 'max_steps num_batches', 'steps'),
        (['cifar10_benchmark'], 'num_warmup_batches', 'warmup_steps'),
        (TRAINERS, 'num_intra_threads num-intra-threads', 'intra_op_threads'),
        (TRAINERS, 'display_every', 'log_frequency'),
        (TRAINERS + ['cifar10_benchmark'], 'dtype', 'compute_dtype'),
        (['cifar10_run'], 'package-modules', 'package_modules'),
    ],
)
def test_the_flag_of_the_script(scripts, given, flag):
    for script in scripts:
        for name in given.split():
            assert programs.call(script, f'--{name}=a=b') == (
                2,
                '',
                f'{script}.py: error: --{name}=a=b is unknown: use --{flag}=a=b; --help lists the flags\n',
            )


@pytest.mark.parametrize('script', [*TRAINERS, 'cifar10_benchmark', 'cifar10_eval'])
def test_half_precision(script):
    """A flag without a value, such as the tutorial's use_fp16."""
    remedy = 'use --compute_dtype=bfloat16'
    if script == 'cifar10_eval':
        remedy = 'leave it out, or use cifar10_train.py'
    for given, told in [
        ('--use_fp16', remedy),
        ('--use_fp16=true', remedy),
        ('-use-fp16=1', remedy),
        ('--amp', remedy),
        ('--use_fp16=False', 'leave it out'),
        ('--nouse_fp16', 'leave it out'),
    ]:
        status, _, stderr = programs.call(script, given)
        line = f'{script}.py: error: {given} is unknown: {told}; --help lists the flags\n'
        assert (status, stderr) == (2, line)


@pytest.mark.parametrize(
    'command, remedy',
    [
        ('cifar10_eval --batch_size=128', '.*: leave it out, or use cifar10_train.py; .*'),
        ('cifar10_classic --log_device_placement', '.*: leave it out, or use cifar10_train.py; .*'),
        ('cifar10_train --num_examples=9', '.*: leave it out, or use cifar10_eval.py; .*'),
        ('cifar10_train --num_workers=2', '.*: leave it out, or use cifar10_launch.py; .*'),
        ('cifar10_launch --num_gpus=2', '.*; the flags of cifar10_distributed_train.py come .*'),
        ('cifar10_run --num_gpus=2', '.*; the flags of the program come after its name; .*'),
        ('cifar10_predict --use_gpu', "Unknown command line flag 'use_gpu'; .*"),  # absl's use_...
        ('cifar10_train --num_gpus=2', '.*: leave it out, or use cifar10_multi_gpu_train.py; .*'),
        ('cifar10_train --num_gpu=2', '.*: leave it out, or use cifar10_multi_gpu_train.py; .*'),
        ('cifar10_train --package-modules', '.*: leave it out, or use cifar10_run.py; .*'),
        ('cifar10_multi_gpu_train --num_gpuss=2', '.* Did you mean: num_gpus.*'),
        ('cifar10_launch --mode=async', '.*; the flags of cifar10_distributed_train.py come .*'),
        ('cifar10_run --max_steps=1', '.*; the flags of the program come after its name; .*'),
    ],
)
def test_no_flag_of_the_script(command, remedy):
    script, argument = command.split()
    status, _, stderr = programs.call(script, argument)
    assert status == 2 and re.fullmatch(f'{script}.py: error: .*{remedy}\n', stderr), stderr


def test_help_has_a_short_name():
    assert programs.call('cifar10_train', '-h') == programs.call('cifar10_train', '--help')
