"""Job of the training flags, and plan.

A trainer prints the plan at the start and writes it for TensorBoard.
"""

import contextlib
import dataclasses
import math

from absl import flags

from cifar10 import multi_gpu, network, training
from cifar10.cli import data_flags, program, training_flags
from cifar10.config import CLASSIC, HPARAMS, RECIPES
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.runs import checkpoint, initial_weights, run, run_record
from cifar10.system import machine

FLAGS = flags.FLAGS


def job_from_flags(num_devices=1, variable_strategy=None, **cluster_fields):
    """Prepare the data set; return the Job of the flags and arguments, see training.create_job.

    `variable_strategy` None means first_device with a GPU, else cpu.

    Raises:
      UserError: flags contradict each other, or the data set is missing or malformed.
    """
    recorded = CLASSIC
    if not FLAGS.fresh and checkpoint.find(FLAGS.train_dir):
        recorded = run_record.read(FLAGS.train_dir).hparams
        data_flags.check_classes_of_run(FLAGS.train_dir)
    hparams = training_flags.hparams_from_flags(recorded)
    devices = find_devices(num_devices)
    if FLAGS.deterministic and machine.is_gpu(devices[0]):
        raise UserError(
            '--deterministic works on CPUs only: hide the GPUs with CUDA_VISIBLE_DEVICES=-1'
        )
    return training.create_job(
        data_flags.dataset_from_flags(),
        hparams,
        devices,
        training_flags.settings_from_flags(),
        variable_strategy or ('first_device' if machine.is_gpu(devices[0]) else 'cpu'),
        FLAGS.network,
        **cluster_fields,
    )


def find_devices(num_devices):
    """Return the devices of all towers; print a line if there are fewer GPUs than requested."""
    devices = multi_gpu.tower_devices(num_devices)
    num_gpus = len(set(devices))
    if not machine.is_gpu(devices[0]):
        print(f'No GPU found: using {", ".join(devices)} ({machine.GPU_REMEDY})')
    elif num_gpus < num_devices:
        print(f'Fewer GPUs ({num_gpus}) than requested ({num_devices}): GPUs are shared')
    return devices


@contextlib.contextmanager
def start_run(job, mode=None, cluster_line=None):
    """Yield the Run of a Job in --train_dir; print its notes and, if steps are left, the plan.

    `mode` and `cluster_line` are those of a cluster. The UserErrors are those of run.open_run.
    """
    # With --fresh, before the old run is moved aside, because the path can be wrong.
    weights = _initial_weights(job) if FLAGS.init_checkpoint and FLAGS.fresh else None
    record = training.record(job, FLAGS.dataset, mode)
    with run.open_run(FLAGS.train_dir, record, FLAGS.fresh) as opened:
        weights_line = None
        if FLAGS.init_checkpoint and opened.resumed:
            weights_line = 'Initial weights: those of the resumed run, not of --init_checkpoint'
        elif FLAGS.init_checkpoint:
            weights_line = _use(weights or _initial_weights(job), opened)
        for note in opened.notes:
            print(note)
        if opened.saved_step < job.run_length.last_step:
            opened.plan = print_plan(job, opened.saved_step, cluster_line, weights_line)
        yield opened


def _initial_weights(job):
    variables = network.variables(job.network.graph(is_training=True)).values()
    return initial_weights.read(FLAGS.init_checkpoint, variables)


def _use(weights, opened):
    """Let a Run start with InitialWeights; return the line of the plan about them."""
    opened.initial_weights = weights
    opened.notes += weights.notes
    opened.record = dataclasses.replace(opened.record, init_checkpoint=weights.path)
    new = ', '.join(weights.new_variables) or 'none'
    return f'Initial weights: {", ".join(weights.names)} from {weights.path}; new: {new}'


def print_plan(job, first_step, cluster_line=None, weights_line=None):
    """Print the plan, and return its lines.

    Args:
      job: a Job.
      first_step: the global step at which training starts.
      cluster_line: for a worker of a cluster, the line of `describe_cluster`.
      weights_line: with --init_checkpoint, the line about the initial weights.
    """
    run_length, hparams, devices = job.run_length, job.hparams, job.resources.devices
    graph = job.network.graph(device=devices[0], is_training=True)
    # A network of the user may ignore compute_dtype.
    types = {output.dtype.name for op in graph.get_operations() for output in op.outputs}
    dtype = 'bfloat16' if 'bfloat16' in types else 'float32'
    sizes = [v.shape.num_elements() for v in graph.get_collection('trainable_variables')]
    weights = '' if cluster_line else f'; weights on {job.resources.variable_device}'
    last_step, examples_per_step = run_length.last_step, run_length.examples_per_step
    lines = [
        f'{program.versions(job.session_config)}; devices {", ".join(devices)}{weights}',
        f'Data: {job.num_examples} examples of {dataset.format_class_names(job.dataset.class_names)} in {job.dataset.directory}',
        f'Network: {sum(sizes)} parameters ({job.network.name}), products of the hidden layers in {dtype}',
        f'Batch: {hparams.batch_size} examples per tower, {examples_per_step} examples per step; '
        f'epoch: {job.num_examples / examples_per_step:.1f} steps',
        'Recipe: ' + _recipe(hparams),
        f'Learning rate: {_learning_rate(run_length, hparams)} (--lr_scaling={hparams.lr_scaling})',
        f'End: step {last_step}, epoch {run_length.epoch_at(last_step):.2f}',
        weights_line,
        _seed(job.settings, first_step),
        cluster_line,
    ]
    lines = list(filter(None, lines))
    print('\n'.join(lines))
    return lines


def _seed(settings, first_step):
    """Return the line of the plan about the seed, or None."""
    if settings.seed is None:
        return None
    if not settings.deterministic:
        return f'Seed: {settings.seed}, for initial values and distortions, not for the order of the examples'
    replayed = f', the input of the first {first_step} steps is replayed' if first_step else ''
    return f'Seed: {settings.seed}, deterministic on this machine{replayed}'


def _recipe(hparams):
    """Return the recipe and the hyperparameters that differ from it."""
    recipe = RECIPES[hparams.recipe]
    changes = []
    for name in HPARAMS:
        value, usual = getattr(hparams, name), getattr(recipe, name)
        if not hparams.has_effect(name):
            continue
        if not recipe.has_effect(name):
            changes.append(f'{name} {value}')
        elif value != usual:
            changes.append(f'{name} {value} instead of {usual}')
    about = 'as in the books' if recipe == CLASSIC else 'see docs/recipes.md'
    changed = f'; changed: {", ".join(changes)}' if changes else ''
    return f'{hparams.recipe}, {about}{changed}'


def _learning_rate(run_length, hparams):
    """Return the learning rate schedule."""
    rate = run_length.peak_learning_rate(hparams)
    if hparams.schedule_ends:
        return (
            f'rises to {rate:g} in {hparams.warmup_epochs:g} epochs, then falls to 0 at epoch {hparams.epochs:g} '
            f'(step {run_length.num_steps(hparams)})'
        )
    if not hparams.has_effect('num_epochs_per_decay'):
        return f'{hparams.schedule}, at most {rate:g}'
    examples = run_length.examples_per_decay(hparams)
    return (
        f'{rate:g}, multiplied by {hparams.learning_rate_decay_factor:g} every {hparams.num_epochs_per_decay:g} epochs '
        f'({math.ceil(examples / run_length.examples_per_step)} steps)'
    )


def describe_cluster(cluster, task, strategy):
    """Return the line of the plan about a Cluster, the Task of this process and the Strategy."""
    chief = ', the chief' if task.is_chief else ''
    return (
        f'Cluster: mode {strategy.mode}, parameter servers: {len(cluster.ps_hosts)}, workers: {len(cluster.worker_hosts)}; '
        f'this is {cluster.describe(task)}{chief}'
    )
