"""The part of tf.contrib that the package tf_slim has.

The tables serve two purposes: with tf_slim, they say what tf.contrib gets from it; without, which
missing names `pip install tf_slim` brings.
"""

import importlib
import re
import sys

_DATA = (
    'data_decoder data_provider dataset dataset_data_provider parallel_reader prefetch_queue '
    'tfexample_decoder'
)
_LAYERS = 'initializers layers normalization optimizers regularizers rev_block_lib summaries utils'
_SLIM = 'evaluation learning model_analyzer queues summaries'
_MODULES = {  # module below tf.contrib -> module of tf_slim that has all its names
    f'{package}.{name}': f'{slim_package}{name}'
    for package, slim_package, names in [
        ('framework.python.ops', 'ops.', 'arg_scope variables'),
        ('layers', 'layers.', 'summaries'),
        ('layers.python.layers', 'layers.', _LAYERS),
        ('layers.python.ops', 'layers.', 'bucketization_op sparse_ops'),
        ('losses', 'losses.', 'metric_learning'),
        ('losses.python.losses', 'losses.', 'loss_ops'),
        ('metrics.python.metrics', 'metrics.', 'classification'),
        ('metrics.python.ops', 'metrics.', 'histogram_ops metric_ops'),
        ('slim', 'layers.', _LAYERS),
        ('slim', 'data.', _DATA),
        ('slim', '', _SLIM + ' nets'),
        ('slim.python.slim', '', _SLIM),
        ('slim.python.slim.data', 'data.', _DATA),
        (
            'slim.python.slim.nets',
            'nets.',
            'alexnet inception inception_v1 inception_v2 inception_v3 overfeat resnet_utils '
            'resnet_v1 resnet_v2 vgg',
        ),
        ('training.python.training', 'training.', 'evaluation training'),
    ]
    for name in names.split()
}
_MODULES['framework.python.ops.ops'] = 'ops.framework_ops'
_MODULES['losses.python.metric_learning.metric_loss_ops'] = 'losses.metric_learning'
_MIXED = {  # module below tf.contrib -> modules of tf_slim that have many of its names
    'framework': 'ops.arg_scope ops.framework_ops ops.variables',
    'framework.python.ops': 'ops.arg_scope ops.framework_ops ops.variables',
    'layers': 'layers',
    'layers.python.layers': 'layers',
    'losses': 'losses',
    'losses.python.losses': 'losses',
    'losses.python.metric_learning': 'losses',
    'metrics': 'metrics',
    'metrics.python.metrics': 'metrics',
    'slim': 'layers ops.arg_scope ops.variables',
    'slim.losses': 'losses',
    'slim.metrics': 'metrics',
    'training': 'training.evaluation training.training',
}
_NAMES = {  # module of tf_slim 1.1.0 -> its public names
    'layers': (
        'GDN OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES RevBlock adaptive_clipping_fn '
        'apply_regularization avg_pool2d avg_pool3d batch_norm bias_add bucketize conv1d conv2d '
        'conv2d_in_plane conv2d_transpose conv3d conv3d_transpose convolution convolution1d '
        'convolution2d convolution2d_in_plane convolution2d_transpose convolution3d '
        'convolution3d_transpose dense_to_sparse dropout elu flatten fully_connected gdn '
        'group_norm images_to_sequence instance_norm l1_l2_regularizer l1_regularizer '
        'l2_regularizer layer_norm legacy_fully_connected legacy_linear legacy_relu linear '
        'max_pool2d max_pool3d maxout one_hot_encoding optimize_loss pool recompute_grad relu '
        'relu6 repeat rev_block scale_gradient separable_conv2d separable_convolution2d '
        'sequence_to_images softmax spatial_softmax stack sum_regularizer summarize_activation '
        'summarize_activations summarize_biases summarize_collection summarize_tensor '
        'summarize_tensors summarize_variables summarize_weights unit_norm '
        'variance_scaling_initializer xavier_initializer xavier_initializer_conv2d'
    ),
    'losses': (
        'absolute_difference add_loss cluster_loss compute_weighted_loss contrastive_loss '
        'cosine_distance get_losses get_regularization_losses get_total_loss hinge_loss '
        'lifted_struct_loss log_loss mean_pairwise_squared_error mean_squared_error npairs_loss '
        'npairs_loss_multilabel sigmoid_cross_entropy softmax_cross_entropy '
        'sparse_softmax_cross_entropy triplet_semihard_loss'
    ),
    'metrics': (
        'accuracy aggregate_metric_map aggregate_metrics auc_using_histogram '
        'auc_with_confidence_intervals cohen_kappa count f1_score precision_at_recall '
        'precision_recall_at_equal_thresholds recall_at_precision sparse_recall_at_top_k '
        'streaming_accuracy streaming_auc streaming_concat streaming_covariance '
        'streaming_curve_points streaming_dynamic_auc streaming_false_negative_rate '
        'streaming_false_negative_rate_at_thresholds streaming_false_negatives '
        'streaming_false_negatives_at_thresholds streaming_false_positive_rate '
        'streaming_false_positive_rate_at_thresholds streaming_false_positives '
        'streaming_false_positives_at_thresholds streaming_mean streaming_mean_absolute_error '
        'streaming_mean_cosine_distance streaming_mean_iou streaming_mean_relative_error '
        'streaming_mean_squared_error streaming_mean_tensor streaming_pearson_correlation '
        'streaming_percentage_less streaming_precision streaming_precision_at_thresholds '
        'streaming_recall streaming_recall_at_k streaming_recall_at_thresholds '
        'streaming_root_mean_squared_error streaming_sensitivity_at_specificity '
        'streaming_sparse_average_precision_at_k streaming_sparse_average_precision_at_top_k '
        'streaming_sparse_precision_at_k streaming_sparse_precision_at_top_k '
        'streaming_sparse_recall_at_k streaming_specificity_at_sensitivity '
        'streaming_true_negatives streaming_true_negatives_at_thresholds streaming_true_positives '
        'streaming_true_positives_at_thresholds'
    ),
    'ops.arg_scope': (
        'add_arg_scope arg_scope arg_scope_func_key arg_scoped_arguments current_arg_scope '
        'has_arg_scope'
    ),
    'ops.framework_ops': 'get_graph_from_inputs get_name_scope',
    'ops.variables': (
        'VariableDeviceChooser add_model_variable assert_global_step assert_or_get_global_step '
        'assign_from_checkpoint assign_from_checkpoint_fn assign_from_values assign_from_values_fn '
        'create_global_step deprecated filter_variables get_global_step get_local_variables '
        'get_model_variables get_or_create_global_step get_trainable_variables get_unique_variable '
        'get_variable_full_name get_variables get_variables_by_name get_variables_by_suffix '
        'get_variables_to_restore global_variable local_variable model_variable variable'
    ),
    'training.evaluation': (
        'StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator evaluate_once '
        'evaluate_repeatedly get_or_create_eval_step wait_for_new_checkpoint'
    ),
    'training.training': (
        'add_gradients_summaries clip_gradient_norms clip_gradient_norms_fn create_train_op '
        'multiply_gradients train'
    ),
}
PACKAGES = (
    {  # of tf.contrib; they exist without tf_slim, too
        path[: dot.start()] for path in {*_MODULES, *_MIXED} for dot in re.finditer(r'\.|$', path)
    }
    - set(_MODULES)
)


def install():
    """Give the modules of tf.contrib the names of tf_slim."""
    for path, slim_module in _MODULES.items():
        package, _, name = f'tensorflow.contrib.{path}'.rpartition('.')
        module = importlib.import_module(f'tf_slim.{slim_module}')
        sys.modules[f'{package}.{name}'] = module
        setattr(sys.modules[package], name, module)
    # In framework.python.ops, arg_scope is the function, not the module.
    for path, slim_modules in _MIXED.items():
        for slim_module in slim_modules.split():
            names = vars(importlib.import_module(f'tf_slim.{slim_module}'))
            vars(sys.modules[f'tensorflow.contrib.{path}']).update(
                {name: names[name] for name in _NAMES[slim_module].split()}
            )


def has(module, name):
    """Return True if tf_slim gives a module of tf.contrib a name.

    Args:
      module: like 'tf.contrib.layers'; False for a module that is not in tf.contrib.
      name: of a function, a class, a constant or a module.
    """
    found = re.fullmatch(r'(?:tf|tensorflow)\.contrib\.((\w+).*)', module)
    path, top = found.groups() if found else ('', '')
    slim_modules = _MIXED.get(path) or _MIXED.get(top, '')
    return f'{path}.{name}' in _MODULES or any(
        name in _NAMES[slim_module].split() for slim_module in slim_modules.split()
    )
