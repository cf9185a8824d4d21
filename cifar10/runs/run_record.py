"""The record of a run, run.json: what is trained in a directory, for the next start to compare and
for the evaluation."""

import math
import os
import re
import reprlib
import sys

from cifar10 import files
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, LR_SCALINGS, OPTIMIZERS, RECIPES, SCHEDULES, HParams

NAME = 'run.json'
_BEST = re.compile(r'best\.ckpt-\d+')
_WORDS = {
    'recipe': list(RECIPES),
    'optimizer': OPTIMIZERS,
    'schedule': SCHEDULES,
    'lr_scaling': LR_SCALINGS,
}


def recorded_hparams(train_dir):
    """The HParams of the run in the directory; the classic ones if none are recorded.

    Raises:
      UserError: the record is damaged.
    """
    record = read(train_dir)
    return HParams(**{name: record[name] for name in HParams._fields}) if record else CLASSIC


def recorded_last_step(train_dir):
    """The step at which the run in the directory ends; infinite if none is recorded.

    Raises:
      UserError: the record is damaged.
    """
    return (read(train_dir) or {}).get('last_step', math.inf)


def recorded_best(train_dir):
    """The best checkpoint that the run in the directory has kept: its name, `checkpoint`, and its
    `precision`; None if it has not.

    Raises:
      UserError: the record is damaged.
    """
    return (read(train_dir) or {}).get('best')


def read(train_dir):
    """The record in the directory, or None if there is none.

    Raises:
      UserError: the record is damaged.
    """
    return files.read_json(
        os.path.join(train_dir, NAME),
        _validated,
        'delete it to train or evaluate without the record',
    )


def _validated(record):
    """The record with its numbers in the types of HParams; a field that an earlier version did not
    record is classic.

    Raises:
      ValueError: it is not the record of a run.
    """
    if not isinstance(record, dict):
        raise ValueError('it is not a JSON object')
    for name in ('num_towers', 'class_names'):
        if name not in record:
            raise ValueError('%s is missing' % name)
    _check_number('num_towers', record['num_towers'])
    for name in ('num_examples', 'last_step'):  # which version 1.1 did not record
        if name in record:
            _check_number(name, record[name])
    names = record['class_names']
    if names is not None and not (
        isinstance(names, list)
        and all(isinstance(name, str) and name.isprintable() for name in names)
    ):
        raise ValueError('class_names is not a list of names')
    best = record.get('best')
    if best is not None:
        if not (isinstance(best, dict) and _BEST.fullmatch(str(best.get('checkpoint')))):
            raise ValueError('best names no checkpoint')
        _check_number('the precision of best', best.get('precision'))
    seed = record.get('seed')
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**31):
        raise ValueError('seed is %s' % reprlib.repr(seed))
    if not isinstance(record.get('deterministic', False), bool):
        raise ValueError('deterministic is %s' % reprlib.repr(record['deterministic']))
    values = dict(record)
    for name, classic in CLASSIC._asdict().items():
        value = record.get(name, classic)
        if name in _WORDS and value not in _WORDS[name]:
            raise ValueError(
                '%s is %s, not one of %s' % (name, reprlib.repr(value), ', '.join(_WORDS[name]))
            )
        if name not in _WORDS:
            _check_number(name, value)
            if isinstance(classic, int) and value != int(value):
                raise ValueError('%s is %s, not a whole number' % (name, reprlib.repr(value)))
        values[name] = type(classic)(value)
    return values


def _check_number(name, value):
    """Raises ValueError unless the value is a number that is not negative; only the end of a run
    may be infinite."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_endless = name in ('epochs', 'last_step') and value == math.inf
    if not is_number or not is_endless and not 0 <= value <= sys.float_info.max:
        raise ValueError('%s is %s' % (name, reprlib.repr(value)))


def check_classes(train_dir, class_names):
    """Checks that the run in the directory has been trained on these classes, as far as both are
    known.

    Raises:
      UserError: it has been trained on others, or the record is damaged.
    """
    recorded = (read(train_dir) or {}).get('class_names')
    if recorded and class_names and recorded != list(class_names):
        raise UserError(
            'The run in %s was trained on other classes (%s) than those of the data (%s): give its data, or the directory '
            'of another run' % (train_dir, dataset.listed(recorded), dataset.listed(class_names))
        )


def compare(train_dir, record, hparams):
    """Compares the recorded run with the one that is to resume it, and prints which hyperparameters
    and which seed differ.

    Raises:
      UserError: the classes, the recipe or the optimizer differ, or the number of examples where
        the schedule depends on it.
    """
    recorded = read(train_dir)
    if not recorded:
        return
    if recorded['class_names'] != record['class_names']:
        raise UserError(
            'The run in %s was trained on other classes (%s): give another --train_dir, or --fresh to move it aside'
            % (train_dir, dataset.listed(recorded['class_names']))
        )
    num_examples = recorded.setdefault('num_examples', record['num_examples'])
    if num_examples != record['num_examples'] and hparams.counts_epochs:
        raise UserError(
            'The run in %s was trained on %d examples, not %d, and its schedule counts epochs: give the same data, '
            'another --train_dir, or --fresh to move it aside'
            % (train_dir, num_examples, record['num_examples'])
        )
    for name in ('recipe', 'optimizer'):  # other optimizers have other variables
        if recorded[name] != record[name]:
            raise UserError(
                'The run in %s was trained with --%s=%s, not %s: give the same, another --train_dir, or --fresh to move '
                'it aside' % (train_dir, name, recorded[name], record[name])
            )
    changed = [
        '%s %s (was %s)' % (name, record[name], recorded[name])
        for name in record
        if name not in ('last_step', 'seed', 'deterministic')
        and recorded[name] != record[name]
        and hparams.has_effect(name)
    ]
    if changed:
        print(
            'The run in %s is resumed with different hyperparameters: %s. The learning-rate schedule counts the steps so far as '
            'if they had been made with these' % (train_dir, ', '.join(changed)),
            flush=True,
        )
    # earlier versions did not record it
    if 'deterministic' in recorded and _determined_by(recorded) != _determined_by(record):
        print(
            'The run in %s used %s; now it uses %s. To repeat it exactly, use the same flags at each start'
            % (train_dir, _determined_by(recorded), _determined_by(record)),
            flush=True,
        )


def _determined_by(record):
    """Returns the flags that determine the random numbers of a run."""
    return (
        '--deterministic --seed=%s' % record.get('seed')
        if record['deterministic']
        else 'no --deterministic'
    )
