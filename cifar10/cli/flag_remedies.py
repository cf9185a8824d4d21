"""Remedies for unknown flags: former names, usual names, flags of other scripts."""

import shlex

from cifar10.config import HParams, Intervals

_OTHER_NAMES = {  # of each flag. The first flag of the script that has the other name is suggested.
    'train_dir': 'checkpoint_dir checkpoint_path log_dir logdir model_dir out_dir output_dir save_dir',
    'eval_dir': 'log_dir logdir out_dir output_dir',
    'export_dir': 'out_dir output_dir save_dir saved_model saved_model_dir',
    'checkpoint_dir': 'model_dir train_dir',
    'checkpoint': 'checkpoint_file checkpoint_path ckpt',
    'data_dir': 'data data_path dataset_dir',
    'max_steps': 'iterations max_iter max_iters max_step n_steps num_iterations num_steps num_train_steps steps '
    'total_steps train_steps training_steps',
    'steps': 'max_steps num_steps',
    'epochs': 'epoch max_epochs n_epochs num_epochs num_train_epochs train_epochs',
    'batch_size': 'batch batchsize bs train_batch_size',
    'initial_learning_rate': 'base_lr init_lr initial_lr learning_rate lr',
    'learning_rate_decay_factor': 'decay_factor decay_rate learning_rate_decay lr_decay',
    'num_epochs_per_decay': 'decay_epochs lr_decay_epochs',
    'fc_weight_decay': 'wd weight_decay',
    'moving_average_decay': 'ema_decay',
    'optimizer': 'opt',
    'schedule': 'lr_schedule lr_scheduler scheduler',
    'warmup_epochs': 'warmup',
    'seed': 'random_seed',
    'num_gpus': 'gpu gpus n_gpus ngpus num_gpu',
    'log_frequency': 'log_every log_every_n_steps log_interval log_steps',
    'save_summaries_steps': 'summary_steps',
    'save_checkpoint_steps': 'checkpoint_steps save_steps',
    'eval_every': 'eval_freq eval_interval eval_steps',
    'eval_interval_secs': 'eval_interval',
    'num_preprocess_threads': 'input_threads',
    'label_mode': 'label',
    'num_examples': 'examples',
    'num_views': 'views',
    'top_k': 'topk',
    'predictions_file': 'predictions',
    'figures_dir': 'figures',
    'saved_model_dir': 'saved_model',
    'tflite_file': 'tflite',
    'contact_sheet_file': 'contact_sheet',
    'target_precision': 'reach',
    'plot_file': 'plot',
    'json_file': 'json',
    'trace_file': 'trace',
    'job_name': 'job',
    'task_index': 'task task_id',
    'num_ps': 'ps',
    'num_workers': 'workers',
    'max_restarts': 'restarts',
}
_TRAINING = [
    *'data_dir dataset data_url label_mode train_dir max_steps fresh seed deterministic log_device_placement '
    'intra_op_threads inter_op_threads num_preprocess_threads'.split(),
    *Intervals._fields,
    *HParams._fields,
]
_MULTI_GPU = 'num_gpus devices_per_tower variable_strategy'.split()
_CLUSTER = (
    'ps_hosts worker_hosts job_name task_index mode replicas_to_aggregate fetch_steps push_steps average_period '
    'connect_timeout_secs stall_timeout_secs'.split()
)
_SCRIPTS = {  # Flags of the script to suggest; those of other unknown flags get absl's message.
    'cifar10_train.py': _TRAINING,
    'cifar10_multi_gpu_train.py': _MULTI_GPU,
    'cifar10_distributed_train.py': _CLUSTER,
    'cifar10_launch.py': 'num_ps num_workers max_restarts'.split(),
    'cifar10_eval.py': 'checkpoint_dir checkpoint eval_dir eval_data eval_interval_secs run_once timeout_secs num_examples '
    'num_views top_k use_gpu predictions_file figures_dir'.split(),
    'cifar10_predict.py': 'saved_model_dir recursive json csv'.split(),
    'cifar10_export.py': 'export_dir model_version tflite_file'.split(),
    'cifar10_dataset.py': 'test_fraction strict contact_sheet_file'.split(),
    'cifar10_results.py': 'runs at_epochs target_precision plot_file'.split(),
    'cifar10_benchmark.py': 'baseline rounds warmup_steps steps gpu_gflops json_file trace_file'.split(),
    'cifar10_run.py': ['package_modules'],
}


def find_remedy(argument, known, has_remainder=False):
    """Return the remedy for an unknown flag; None if its name is not in the tables.

    Args:
      argument: the flag as it was given, such as '--learning-rate=0.1'.
      known: names of the flags of the script.
      has_remainder: True if the flags of cifar10_distributed_train.py may follow --.
    """
    name, equals, value = argument.lstrip('-').partition('=')
    name = name.replace('-', '_')
    names = [name] + [flag for flag, others in _OTHER_NAMES.items() if name in others.split()]
    remainder = _TRAINING + _MULTI_GPU + _CLUSTER if has_remainder else []
    places = [(known, 'use {}'), (remainder, 'put {} after --')] + [
        (found, f'leave it out, or use {script} {{}}') for script, found in _SCRIPTS.items()
    ]
    for found, remedy in places:
        for flag in names:
            if flag in found:
                return remedy.format(shlex.quote(f'--{flag}{equals}{value}'))
    return None
