"""The plan that a trainer prints, and writes for TensorBoard, before it starts."""

import math

import tensorflow.compat.v1 as tf

from cifar10 import multi_gpu, optimizer
from cifar10.cli import versions
from cifar10.data import dataset
from cifar10.hparams import CLASSIC, HParams
from cifar10.parallelism import layout
from cifar10.report import comparison
from cifar10.runs import event_file, machine


def print_plan(job, run, cluster_line=None):
    """Prints what is trained on what, and how the learning rate will change; TensorBoard shows the
    same lines in its tab Text.

    Args:
      job: a Job.
      run: a RunDirectory, where the lines are written if there is something to do; None for a
        worker that leaves all writing to another.
      cluster_line: of a worker of a cluster, see `of_cluster`.

    Raises:
      UserError: they cannot be written.
    """
    lines = ([cluster_line] if cluster_line else []) + _lines(
        job, run.first_step if run else 0, not cluster_line
    )
    print('\n'.join(lines), flush=True)
    if run and run.first_step < job.pace.last_step:
        with event_file.EventFile(run.path) as opened:
            opened.write(tf.Event(step=run.first_step, summary=comparison.plan(lines)))


def _lines(job, first_step, is_alone):
    """The lines; a worker of a cluster is not alone, and tells where the weights are when it has
    built its graph."""
    pace, hparams, threads = job.pace, job.hparams, job.threads
    lines = (
        [
            versions.line(job.session.config),
            'Data: %d examples of %s in %s'
            % (job.num_examples, dataset.listed(job.data.class_names), job.data_dir),
            'Devices: %s' % ', '.join(job.devices),
        ]
        + _towers(job)
        + (_weights(job) if is_alone else [])
        + [
            'Threads: %s per operation (intra-op), %s across operations (inter-op), %d for the input'
            % (threads.intra_op or 'all cores', threads.inter_op or 'all cores', threads.prefetch),
            'Batch: %d examples per tower (slices: %d), %d examples per step'
            % (hparams.batch_size, job.num_slices, pace.examples_per_step),
            'Epoch: %d examples, %.1f steps'
            % (pace.examples_per_epoch, pace.examples_per_epoch / pace.examples_per_step),
            'Recipe: ' + _recipe(hparams),
            'Learning rate: ' + _learning_rate(pace, hparams, first_step),
        ]
    )
    if optimizer.batch_factor(pace, hparams) != 1 or hparams.lr_scaling != 'none':
        lines.append('Learning rate: ' + _scaling(pace, hparams))
    lines.append('End: step %d, epoch %.1f' % (pace.last_step, pace.epochs(pace.last_step)))
    by_whom = '' if is_alone else '; by the chief'
    lines.append('Evaluation: %s%s' % (_evaluation(job.intervals), by_whom))
    if job.intervals.profile_step:
        lines.append(
            'Trace: %s%s'
            % (_trace(job.intervals.profile_step, first_step, pace.last_step), by_whom)
        )
    if job.seed is not None:
        lines.append(
            'Seed: %d, which fixes %s'
            % (
                job.seed,
                'everything on this machine'
                if job.deterministic
                else 'initial values and distortions, but not the order of the images',
            )
        )
    return lines


def _towers(job):
    """Which layer is where, if the towers are divided, and what several devices mean where there is
    no GPU."""
    if job.devices_per_tower == 1:
        return _on_one_processor(job)
    parts = [
        ', '.join(part)
        for part in multi_gpu.divide_layers(job.devices_per_tower, job.data.num_classes)
    ]
    towers = [job.devices[i : i + len(parts)] for i in range(0, len(job.devices), len(parts))]
    lines = [
        'Tower %d: %s' % (i, '; '.join('%s on %s' % pair for pair in zip(parts, devices)))
        for i, devices in enumerate(towers)
    ]
    return lines + _on_one_processor(job)


def _on_one_processor(job):
    """What to expect of several devices that are the same processor."""
    if len(job.devices) == 1 or machine.is_gpu(job.devices[0]):
        return []
    gained = 'Speed: nothing is gained by %d CPU devices, because they share the same cores' % len(
        job.devices
    )
    if job.num_towers == 1:
        return [gained]
    return [
        '%s: a step has %d times the examples of one tower, and takes about %d times as long'
        % (gained, job.num_towers, job.num_towers)
    ]


def _evaluation(intervals):
    eval_steps, kept = (
        intervals.eval_steps,
        '; the best checkpoint is kept (--keep_best)' if intervals.keep_best else '',
    )
    if eval_steps == 0:
        return 'none (--eval_steps=0)'
    if eval_steps is None:
        return 'the last checkpoint on the test images (--eval_steps=1000 would evaluate every 1000 steps as well)'
    return (
        'every %d steps and at the end, on the test images; training waits for it, which counts in examples/sec and in the '
        'time left%s' % (eval_steps, kept)
    )


def _trace(profile_step, first_step, last_step):
    if profile_step <= first_step:
        return 'none, because step %d has been made already (--profile_step)' % profile_step
    if profile_step > last_step:
        return 'none, because the run ends before step %d (--profile_step)' % profile_step
    return 'of step %d (--profile_step)' % profile_step


def _weights(job):
    """Where the weights are, if there is a choice, and what crosses between devices."""
    if job.devices_per_tower > 1 or job.variable_strategy != 'cpu':
        return layout.of_step(job).describe('Weights', job.variable_strategy, 'per step')
    if len(job.devices) > 1:  # to count the bytes would delay the start
        return ['Weights: on /cpu:0 (--variable_strategy=cpu)']
    return []


def of_cluster(cluster, task, strategy):
    """The line that tells who trains together, and how.

    Args:
      cluster: a Cluster.
      task: the Task of this process.
      strategy: a Strategy.
    """
    return 'Cluster: mode %s, parameter servers: %d, workers: %d; this is %s%s' % (
        strategy.mode,
        len(cluster.ps),
        len(cluster.worker),
        cluster.named(task),
        ', the chief' if task.is_chief else '',
    )


def _recipe(hparams):
    """The recipe, and how its hyperparameters differ from the classic ones."""
    differences = []
    for name in HParams._fields:
        value = getattr(hparams, name)
        classic = getattr(CLASSIC, name) if CLASSIC.has_effect(name) else 'unused'
        if name != 'recipe' and hparams.has_effect(name) and value != classic:
            differences.append('%s %s (classic: %s)' % (name, value, classic))
    return hparams.recipe + (
        '; differs from classic in: ' + ', '.join(differences)
        if differences
        else ', with the hyperparameters of the books'
    )


def _learning_rate(pace, hparams, step):
    """The learning rate from the given step on."""
    rate = optimizer.peak_learning_rate(pace, hparams)
    if hparams.schedule == 'linear':
        return 'rises to %g over %g epochs, then falls to 0 at the end of epoch %g (step %d)' % (
            rate,
            hparams.warmup_epochs,
            hparams.epochs,
            optimizer.num_steps(pace, hparams),
        )
    if hparams.schedule != 'staircase':
        raise ValueError('Unknown schedule: %s' % hparams.schedule)
    examples = optimizer.examples_per_decay(pace, hparams)
    decays = step * pace.examples_per_step // examples
    rate *= hparams.learning_rate_decay_factor**decays
    return '%g, then %g from epoch %g (step %d)' % (
        rate,
        rate * hparams.learning_rate_decay_factor,
        (decays + 1) * hparams.num_epochs_per_decay,
        math.ceil((decays + 1) * examples / pace.examples_per_step),
    )


def _scaling(pace, hparams):
    """Whether the learning rates are scaled with the examples per step."""
    factor = optimizer.batch_factor(pace, hparams)
    if hparams.lr_scaling == 'linear':
        return (
            'scaled by %g, because a step takes %g times the batch of the recipe (--lr_scaling=linear)'
            % (factor, factor)
        )
    return (
        'not scaled, although a step takes %g times the batch of the recipe (--lr_scaling=linear would)'
        % factor
    )
