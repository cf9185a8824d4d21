"""The names of tf.contrib, by module: those that are elsewhere, and those of this package."""

import functools

from tensorboard.plugins import projector
import tensorflow.compat.v1 as tf

from tf1_runner import (
    before_1_0,
    contrib_batch_norm,
    contrib_datasets,
    contrib_functions,
    contrib_hparams,
    contrib_image,
    contrib_rnn,
    initializers,
    layers,
    mnist,
    prefetch_queue,
    sequence_loss,
)
from tf1_runner.private_api import (
    backprop,
    context,
    data_flow_ops,
    distributions_util,
    lookup_ops,
    meta_graph,
    nest,
    ops,
    resource_variable_ops,
    rnn_cell,
    smart_cond,
    summary_ops,
    tensor_util,
)


def _names(module, names):
    """Return a dict of those names in a string that the module has.

    `old=new` stands for a name that has changed.
    """
    pairs = [name.partition('=') for name in names.split()]
    return {
        old: getattr(module, new or old) for old, _, new in pairs if hasattr(module, new or old)
    }


_DATASETS = {
    '': _names(contrib_datasets, 'load_dataset'),
    '.base': {
        'Datasets': mnist.Datasets,
        **_names(
            contrib_datasets, 'Dataset load_csv_with_header load_csv_without_header maybe_download'
        ),
    },
    '.mnist': _names(
        mnist, 'DataSet dense_to_one_hot extract_images extract_labels load_mnist read_data_sets'
    ),
}
_LAYERS = {
    **_names(
        layers,
        'avg_pool2d conv2d convolution2d=conv2d dropout flatten fully_connected max_pool2d '
        'one_hot_encoding relu=fully_connected softmax',
    ),
    **_names(
        initializers,
        'l1_regularizer l2_regularizer variance_scaling_initializer xavier_initializer '
        'xavier_initializer_conv2d=xavier_initializer',
    ),
    'batch_norm': contrib_batch_norm.batch_norm,
    'linear': functools.partial(layers.fully_connected, activation_fn=None),
    'relu6': functools.partial(layers.fully_connected, activation_fn=tf.nn.relu6),
}
MODULES = {
    'contrib': {},
    'contrib.checkpoint': {
        'CheckpointManager': tf.train.CheckpointManager,
        'PythonStateWrapper': tf.train.experimental.PythonState,
    },
    'contrib.cluster_resolver': _names(
        tf.distribute.cluster_resolver,
        'ClusterResolver GCEClusterResolver KubernetesClusterResolver '
        'SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver TPUClusterResolver '
        'UnionClusterResolver=UnionResolver',
    ),
    'contrib.compiler': {},
    'contrib.compiler.jit': _names(tf.xla.experimental, 'experimental_jit_scope=jit_scope'),
    'contrib.compiler.xla': _names(tf.xla.experimental, 'compile'),
    'contrib.data': {
        **_names(
            tf.data,
            'Dataset FixedLengthRecordDataset Iterator TFRecordDataset TextLineDataset',
        ),
        **_names(
            tf.data.experimental,
            'AUTOTUNE Counter CsvDataset Optional RandomDataset Reducer SqlDataset TFRecordWriter '
            'bucket_by_sequence_length choose_from_datasets copy_to_device dense_to_sparse_batch '
            'enumerate_dataset get_next_as_optional get_single_element group_by_reducer '
            'group_by_window ignore_errors make_batched_features_dataset make_csv_dataset '
            'make_saveable_from_iterator map_and_batch parallel_interleave parse_example_dataset '
            'rejection_resample sample_from_datasets scan shuffle_and_repeat unbatch unique',
        ),
        'batch_and_drop_remainder': contrib_functions.batch_and_drop_remainder,
        'padded_batch_and_drop_remainder': contrib_functions.padded_batch_and_drop_remainder,
        # The batches stay on the CPU; TensorFlow copies them.
        'prefetch_to_device': lambda device, buffer_size=None: (
            lambda dataset: dataset.prefetch(buffer_size or 1)
        ),
        'sloppy_interleave': lambda map_func, cycle_length, block_length=1: (
            tf.data.experimental.parallel_interleave(map_func, cycle_length, block_length, True)
        ),
    },
    'contrib.deprecated': before_1_0.SUMMARIES,
    'contrib.distribute': {
        **_names(
            tf.distribute,
            'CrossDeviceOps DistributionStrategy=Strategy OneDeviceStrategy ReplicaContext '
            'get_distribution_strategy=get_strategy get_loss_reduction get_replica_context '
            'get_strategy has_distribution_strategy=has_strategy has_strategy '
            'in_cross_replica_context',
        ),
        **_names(tf.tpu.experimental, 'initialize_tpu_system'),
        **_names(tf.distribute.experimental, 'TPUStrategy'),
        'MirroredStrategy': contrib_functions.mirrored_strategy,
    },
    'contrib.distributions': {
        **_names(
            tf.distributions,
            'Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential '
            'FULLY_REPARAMETERIZED Gamma Laplace Multinomial NOT_REPARAMETERIZED Normal RegisterKL '
            'ReparameterizationType StudentT Uniform kl_divergence',
        ),
        **_names(
            distributions_util,
            'fill_triangular fill_triangular_inverse matrix_diag_transform '
            'reduce_weighted_logsumexp softplus_inverse tridiag',
        ),
    },
    'contrib.eager': {
        **_names(
            tf,
            'GradientTape TensorSpec custom_gradient enable_eager_execution executing_eagerly '
            'function in_eager_mode=executing_eagerly make_template',
        ),
        'Checkpoint': tf.train.Checkpoint,
        'Iterator': iter,
        'Variable': resource_variable_ops.ResourceVariable,
        'defun': contrib_functions.defun,
        'py_func': tf.py_function,
        **_names(
            backprop,
            'gradients_function implicit_gradients=implicit_grad '
            'implicit_value_and_gradients=implicit_val_and_grad '
            'value_and_gradients_function=val_and_grad_function',
        ),
        **_names(
            context,
            'ASYNC DEVICE_PLACEMENT_EXPLICIT DEVICE_PLACEMENT_SILENT DEVICE_PLACEMENT_WARN SYNC '
            'async_clear_error async_wait execution_mode num_gpus set_execution_mode',
        ),
    },
    'contrib.feature_column': _names(
        tf.feature_column,
        'sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity '
        'sequence_categorical_column_with_vocabulary_file '
        'sequence_categorical_column_with_vocabulary_list sequence_numeric_column',
    ),
    'contrib.framework': {
        **_names(
            tf,
            'TensorSpec argsort convert_to_tensor_or_sparse_tensor is_tensor sort',
        ),
        **_names(tf.debugging, 'assert_same_float_dtype assert_scalar'),
        **_names(
            tf.train,
            'assert_global_step create_global_step get_global_step get_or_create_global_step',
        ),
        **_names(ops, 'prepend_name_scope strip_name_scope'),
        **_names(smart_cond, 'smart_case smart_cond smart_constant_value'),
        # tf.train has other names for the first argument of these four.
        'init_from_checkpoint': lambda checkpoint_dir, assignment_map: (
            tf.train.init_from_checkpoint(checkpoint_dir, assignment_map)
        ),
        'list_variables': lambda checkpoint_dir: tf.train.list_variables(checkpoint_dir),
        'load_checkpoint': lambda filepattern: tf.train.load_checkpoint(filepattern),
        'load_variable': lambda checkpoint_dir, name: tf.train.load_variable(checkpoint_dir, name),
        'nest': nest,
    },
    'contrib.image': _names(
        contrib_image,
        'angles_to_projective_transforms rotate transform translate '
        'translations_to_projective_transforms',
    ),
    'contrib.keras': {},
    'contrib.layers': _LAYERS,
    'contrib.learn': {
        'ModeKeys': contrib_functions.ModeKeys,
        'NanLossDuringTrainingError': tf.train.NanLossDuringTrainingError,
    },
    'contrib.learn.python': {},
    'contrib.learn.python.learn': {},
    **{
        f'contrib.learn.{path}datasets{name}': names
        for path in ('', 'python.learn.')
        for name, names in _DATASETS.items()
    },
    'contrib.legacy_seq2seq': {
        'rnn_decoder': contrib_rnn.rnn_decoder,
        'sequence_loss': sequence_loss.legacy_sequence_loss,
        'sequence_loss_by_example': sequence_loss.sequence_loss_by_example,
    },
    'contrib.lookup': {
        **_names(
            lookup_ops,
            'FastHashSpec HasherSpec IdTableWithHashBuckets InitializableLookupTableBase '
            'KeyValueTensorInitializer LookupInterface MutableDenseHashTable=DenseHashTable '
            'MutableHashTable StrongHashSpec TableInitializerBase TextFileIdTableInitializer '
            'TextFileIndex TextFileInitializer TextFileStringTableInitializer '
            'index_table_from_file index_to_string_table_from_file '
            'string_to_index_table_from_file=index_table_from_file',
        ),
        **_names(
            contrib_functions,
            'HashTable index_table_from_tensor '
            'string_to_index_table_from_tensor=index_table_from_tensor',
        ),
    },
    'contrib.losses': _names(
        tf.losses, 'add_loss get_losses get_regularization_losses get_total_loss'
    ),
    'contrib.metrics': {
        'confusion_matrix': tf.confusion_matrix,
        **_names(
            tf.sets,
            'set_difference=difference set_intersection=intersection set_size=size set_union=union',
        ),
    },
    'contrib.nn': _names(tf.nn, 'conv1d_transpose'),
    'contrib.rnn': {
        **_names(
            rnn_cell,
            'BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell '
            'LSTMStateTuple LayerRNNCell MultiRNNCell RNNCell ResidualWrapper',
        ),
        **_names(tf.nn, 'static_bidirectional_rnn static_rnn static_state_saving_rnn'),
        **_names(
            contrib_rnn,
            'EmbeddingWrapper InputProjectionWrapper LSTMBlockCell=lstm_block_cell '
            'OutputProjectionWrapper',
        ),
    },
    'contrib.seq2seq': {'sequence_loss': sequence_loss.sequence_loss},
    'contrib.signal': _names(
        tf.signal,
        'frame hamming_window hann_window inverse_stft inverse_stft_window_fn '
        'linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms overlap_and_add stft',
    ),
    'contrib.slim': {},
    'contrib.slim.prefetch_queue': _names(prefetch_queue, 'prefetch_queue'),
    'contrib.staging': _names(data_flow_ops, 'StagingArea'),
    'contrib.stateless': _names(
        tf.random,
        'stateless_multinomial stateless_random_normal=stateless_normal '
        'stateless_random_uniform=stateless_uniform stateless_truncated_normal',
    ),
    'contrib.summary': _names(
        summary_ops,
        'SummaryWriter all_summary_ops=all_v2_summary_ops always_record_summaries audio '
        'create_file_writer create_summary_file_writer eval_dir flush generic histogram '
        'image import_event initialize never_record_summaries '
        'record_summaries_every_n_global_steps scalar should_record_summaries '
        'summary_writer_initializer_op',
    ),
    'contrib.tensorboard': {},
    'contrib.tensorboard.plugins': {},
    'contrib.tensorboard.plugins.projector': {
        **_names(projector, 'EmbeddingInfo ProjectorConfig SpriteMetadata'),
        'visualize_embeddings': lambda summary_writer, config: projector.visualize_embeddings(
            summary_writer, config
        ),
    },
    'contrib.tfprof': {},
    'contrib.tfprof.model_analyzer': {
        'FLOAT_OPS_OPTIONS': tf.profiler.ProfileOptionBuilder.float_operation(),
        'TRAINABLE_VARS_PARAMS_STAT_OPTIONS': (
            tf.profiler.ProfileOptionBuilder.trainable_variables_parameter()
        ),
        'print_model_analysis': contrib_functions.print_model_analysis,
    },
    'contrib.tpu': _names(
        tf.tpu,
        'CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum '
        'initialize_system outside_compilation replicate rewrite shard shutdown_system',
    ),
    'contrib.training': {
        **_names(contrib_hparams, 'HParams=ContribHParams parse_values'),
        'checkpoints_iterator': tf.train.checkpoints_iterator,
    },
    'contrib.util': {
        **_names(tensor_util, 'constant_value make_ndarray=MakeNdarray make_tensor_proto'),
        **_names(meta_graph, 'ops_used_by_graph_def stripped_op_list_for_graph'),
    },
}
MODULES.update(
    {
        f'contrib.{path}': MODULES[f'contrib.{same}'] if same else {}
        for path, same in [
            ('framework.python.framework', 'framework'),
            ('framework.python.framework.checkpoint_utils', 'framework'),
            ('framework.python.ops', 'framework'),
            ('framework.python.ops.variables', 'framework'),
            ('layers.python', ''),
            ('layers.python.layers', 'layers'),
            ('layers.python.layers.initializers', 'layers'),
            ('layers.python.layers.layers', 'layers'),
            ('layers.python.layers.regularizers', 'layers'),
            ('losses.python.losses', 'losses'),
            ('slim.losses', 'losses'),
            ('slim.metrics', 'metrics'),
            ('slim.python.slim.data.prefetch_queue', 'slim.prefetch_queue'),
            ('training.python', ''),
            ('training.python.training', ''),
            ('training.python.training.hparam', 'training'),
        ]
    }
)
