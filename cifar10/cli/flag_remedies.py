"""Remedies for unknown flags: usual names in other programs, and flags of other scripts."""

import re
import shlex

_OTHER_NAMES = {  # of each flag; the first flag of the script that has the other name is suggested
    'train_dir': 'checkpoint_dir checkpoint_path job_dir log_dir logdir model_dir out_dir output_dir save_dir',
    'eval_dir': 'log_dir logdir out_dir output_dir',
    'export_dir': 'out_dir output_dir save_dir saved_model_dir',
    'checkpoint_dir': 'model_dir train_dir',
    'checkpoint': 'checkpoint_file checkpoint_path ckpt',
    'data_dir': 'data data_path dataset_dir',
    'init_checkpoint': 'checkpoint_path fine_tune_checkpoint pretrained pretrained_model warm_start_from',
    'max_steps': 'iterations max_iter max_iters num_batches num_iterations num_steps num_train_steps steps train_steps training_steps',
    'steps': 'max_steps num_batches num_steps',
    'warmup_steps': 'num_warmup_batches',
    'epochs': 'max_epochs n_epochs num_epochs num_train_epochs train_epochs',
    'batch_size': 'batch batchsize bs train_batch_size',
    'compute_dtype': 'data_type dtype',
    'initial_learning_rate': 'base_lr init_learning_rate init_lr initial_lr learning_rate lr',
    'learning_rate_decay_factor': 'decay_factor decay_rate learning_rate_decay lr_decay',
    'num_epochs_per_decay': 'decay_epochs lr_decay_epochs',
    'fc_weight_decay': 'wd weight_decay',
    'moving_average_decay': 'ema_decay',
    'optimizer': 'opt',
    'schedule': 'lr_schedule lr_scheduler scheduler',
    'seed': 'random_seed',
    'num_gpus': 'gpu gpus n_gpus ngpus num_gpu',
    'intra_op_threads': 'intra_op_parallelism_threads num_intra_threads',
    'inter_op_threads': 'inter_op_parallelism_threads num_inter_threads',
    'log_frequency': 'display_every log_every log_every_n_steps log_interval log_steps',
    'save_checkpoint_steps': 'save_checkpoints_steps save_model_steps save_steps',
    'save_summaries_steps': 'save_summary_steps summaries_steps summary_freq summary_interval summary_steps',
    'eval_every': 'eval_freq eval_interval eval_steps',
    'num_workers': 'workers',
}
# Flags of other programs without a value, such as the tutorial's use_fp16
_HALF_PRECISION = 'amp bf16 fp16 mixed_precision use_amp use_bf16 use_bfloat16 use_fp16'.split()
_OTHER_SCRIPTS = {  # that have a flag
    'batch_size': 'cifar10_train.py',
    'compute_dtype': 'cifar10_train.py',
    'log_device_placement': 'cifar10_train.py',
    'log_frequency': 'cifar10_train.py',
    'max_steps': 'cifar10_train.py',
    'num_gpus': 'cifar10_multi_gpu_train.py',
    'devices_per_tower': 'cifar10_multi_gpu_train.py',
    'ps_hosts': 'cifar10_distributed_train.py',
    'worker_hosts': 'cifar10_distributed_train.py',
    'job_name': 'cifar10_distributed_train.py',
    'task_index': 'cifar10_distributed_train.py',
    'num_ps': 'cifar10_launch.py',
    'num_workers': 'cifar10_launch.py',
    'init_checkpoint': 'cifar10_train.py',
    'eval_data': 'cifar10_eval.py',
    'eval_interval_secs': 'cifar10_eval.py',
    'num_examples': 'cifar10_eval.py',
    'run_once': 'cifar10_eval.py',
    'package_modules': 'cifar10_run.py',
}


def find_remedy(argument, known, has_scripts):
    """Return the remedy for an unknown flag; None if its name is not in the tables.

    Args:
      argument: the flag as it was given, such as '--learning-rate=0.1'.
      known: names of the flags of the script.
      has_scripts: True to name the script that has the flag.
    """
    name, equals, value = argument.lstrip('-').partition('=')
    name = name.replace('-', '_')
    if re.sub('^no', '', name) in _HALF_PRECISION:
        if name.startswith('no') or value.lower() in ('false', 'f', 'no', '0'):
            return 'leave it out'
        name, equals, value = 'compute_dtype', '=', 'bfloat16'
    names = [name] + [flag for flag, others in _OTHER_NAMES.items() if name in others.split()]
    for flag in names:
        if flag in known:
            return 'use ' + shlex.quote(f'--{flag}{equals}{value}')
    scripts = [_OTHER_SCRIPTS[flag] for flag in names if flag in _OTHER_SCRIPTS]
    return f'leave it out, or use {scripts[0]}' if scripts and has_scripts else None
