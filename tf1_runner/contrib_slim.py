"""The part of tf.contrib that the package tf_slim has.

The tables serve two purposes: with tf_slim, they say what tf.contrib gets from it; without, which
missing names `pip install tf_slim` brings.
"""

import importlib
import re
import sys

_MODULES = {  # module below tf.contrib -> module of tf_slim that has all its names
    'framework.python.ops.arg_scope': 'ops.arg_scope',
    'framework.python.ops.variables': 'ops.variables',
    'slim.nets': 'nets',
    **{
        f'{package}.{name}': f'layers.{name}'
        for package in ('layers.python.layers', 'slim')
        for name in ('initializers', 'layers', 'regularizers', 'utils')
    },
}
_MIXED = {  # module below tf.contrib -> modules of tf_slim that have many of its names
    'framework': 'ops.arg_scope ops.variables',
    'framework.python.ops': 'ops.arg_scope ops.variables',
    'layers': 'layers',
    'layers.python.layers': 'layers',
    'slim': 'layers ops.arg_scope ops.variables',
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
    'ops.arg_scope': (
        'add_arg_scope arg_scope arg_scope_func_key arg_scoped_arguments current_arg_scope '
        'has_arg_scope'
    ),
    'ops.variables': (
        'VariableDeviceChooser add_model_variable assert_global_step assert_or_get_global_step '
        'assign_from_checkpoint assign_from_checkpoint_fn assign_from_values assign_from_values_fn '
        'create_global_step deprecated filter_variables get_global_step get_local_variables '
        'get_model_variables get_or_create_global_step get_trainable_variables get_unique_variable '
        'get_variable_full_name get_variables get_variables_by_name get_variables_by_suffix '
        'get_variables_to_restore global_variable local_variable model_variable variable'
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
