"""Record of a run: run.json in its directory.

Other starts of the run, the evaluation and the prediction read it. It holds the HParams by name,
batches_per_step, num_examples, class_names, data_checksum, last_step, seed, deterministic,
num_workers and mode (of a cluster), version (of this package), tensorflow (its version), processor,
onednn, num_sub_batches; and the progress of the run: best (None, or a dict with `checkpoint` and
`precision`), and for a deterministic run logged_step and evaluated_step (of its last log line and
evaluation, or 0). In the file, null is an infinite number.
"""

import json
import math
import os
import re
import reprlib

from cifar10.config import CLASSIC, HPARAMS, HParams
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.runs import checkpoint_files
from cifar10.system import files

RECORD = 'run.json'
# A deterministic run depends on these values: name, and what determines it.
_CAUSES = {
    'deterministic': '{deterministic}',
    'seed': '{seed}',
    'batch_size': '{batch_size}',
    'batches_per_step': 'the numbers of towers and workers',
    'num_workers': 'the number of workers',
    'mode': '{mode}',
    'version': 'the package',
    'tensorflow': 'the installed TensorFlow',
    'processor': 'the computer',
    'onednn': 'TF_ENABLE_ONEDNN_OPTS',
    'num_sub_batches': 'the number of cores, or {inter_op_threads}',
}
_BEST = re.compile(r'best\.ckpt-\d+')


def read(directory):
    """Return the record in the directory of a run; {} if there is none.

    Missing hyperparameters get the values of CLASSIC; a missing last_step is infinite. Records of
    early versions may lack other fields.

    Raises:
      UserError: the record is damaged.
    """
    hint = 'delete it to train or evaluate without the record'
    return files.read_json(os.path.join(directory, RECORD), _validate, hint) or {}


def write(directory, record):
    """Write the record of a run.

    Raises:
      UserError: it cannot be written.
    """
    finite = {name: None if value == math.inf else value for name, value in record.items()}
    content = json.dumps(finite, indent=1, allow_nan=False)
    files.atomic_write(os.path.join(directory, RECORD), content, 'make room there')


def hparams(record):
    """Return the HParams of a record; CLASSIC without a record."""
    return HParams(**{name: record[name] for name in HPARAMS}) if record else CLASSIC


def read_hparams(directory):
    """Return the recorded HParams; CLASSIC without a record.

    Raises:
      UserError: the record is damaged.
    """
    return hparams(read(directory))


def _validate(record):
    """Return the record with each number converted to its type in HParams.

    Raises:
      ValueError, OverflowError: the record is invalid.
    """
    if not isinstance(record, dict):
        raise ValueError('it is not a JSON object')
    for name, field in HPARAMS.items():
        value = record.get(name, field.default)
        if value is None and field.default == math.inf:
            value = math.inf
        if not _is_valid(field, value):
            raise ValueError(f'{name} is {reprlib.repr(value)}')
        record[name] = field.type(value)
    if record.get('last_step') is None:
        record['last_step'] = math.inf
    if not _is_number(record['last_step']):
        raise ValueError(f'last_step is {reprlib.repr(record["last_step"])}')
    if 'num_towers' in record:  # its name in early versions
        record['batches_per_step'] = record.pop('num_towers')
    names = record.get('class_names') or []
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name.isprintable() for name in names
    ):
        raise ValueError('class_names is not a list of names')
    for name in ('logged_step', 'evaluated_step'):
        if not _is_number(record.get(name, 0)):
            raise ValueError(f'{name} is {reprlib.repr(record[name])}')
    best = record.get('best')
    if best and not (
        isinstance(best, dict)
        and _BEST.fullmatch(str(best.get('checkpoint')))
        and _is_number(best.get('precision'))
    ):
        raise ValueError(f'best is {reprlib.repr(best)}')
    return record


def _is_valid(field, value):
    """Return True for a choice or number of a field of HParams; only flags check its bounds."""
    if field.type is str:
        return value in field.metadata['choices']
    return _is_number(value) and field.type(value) == value


def _is_number(value):
    return isinstance(value, (int, float)) and value >= 0


def has_ended(directory, last_step=None):
    """Return True if the preferred checkpoint has reached the run's last step.

    Args:
      directory: the directory of the run.
      last_step: the last step; None reads it from the record.

    Raises:
      UserError: the record is damaged.
    """
    if last_step is None:
        last_step = read(directory).get('last_step', math.inf)
    numbers = [path.rsplit('-', 1)[-1] for path in checkpoint_files.candidates(directory)[:1]]
    return any(number.isdigit() and int(number) >= last_step for number in numbers)


def check_classes(directory, class_names):
    """Check that the run was trained on these classes, if both are known.

    Raises:
      UserError: the classes differ, or the record is damaged.
    """
    recorded = read(directory).get('class_names')
    if recorded and class_names and recorded != list(class_names):
        raise UserError(
            f'The run in {directory} was trained on other classes ({dataset.format_class_names(recorded)}) than those of '
            f'the data ({dataset.format_class_names(class_names)}): give its data, or the directory '
            'of another run'
        )


def check_resumable(directory, record):
    """Compare a new record with that on disk; print the changed values.

    Raises:
      UserError: the classes, recipe, optimizer, training files or (for schedules in epochs) number
        of examples differ, or a deterministic run cannot continue bit for bit.
    """
    new, on_disk = hparams(record), read(directory)
    recorded = dict(record, **on_disk)  # Missing items are unchanged.
    remedy = 'give the same, or another directory, or set {fresh} to move the run aside'
    # Other optimizers have other variables.
    unchangeable_names = ['class_names', 'recipe', 'optimizer']
    # Records of early versions may have this number without a checksum.
    for name in unchangeable_names + ['num_examples'] * new.is_epoch_based:
        if recorded[name] != record[name]:
            formatted = dataset.format_class_names if name == 'class_names' else str
            raise UserError(
                f'The run in {directory} was trained with {name} {formatted(recorded[name])}, not '
                f'{formatted(record[name])}',
                remedy,
                'fresh',
            )
    if recorded['data_checksum'] != record['data_checksum']:
        raise UserError(
            f'The run in {directory} was trained on other training images', remedy, 'fresh'
        )
    if record['deterministic']:
        _check_reproducible(directory, on_disk, record)
    unused = {'last_step', *_CAUSES} - {'batch_size', 'batches_per_step'}
    if recorded['deterministic']:
        unused -= {'seed', 'deterministic'}  # Else the run is not reproducible.
    changed = [
        f'{name} {value} (was {recorded[name]})'
        for name, value in record.items()
        if name not in unused
        and recorded[name] != value
        and (name not in HPARAMS or new.has_effect(name))
    ]
    if changed:
        print(
            f'The run in {directory} is resumed with different hyperparameters: {", ".join(changed)}. The learning rate '
            'is that of a run with these values from its first step'
        )


def _check_reproducible(directory, recorded, record):
    """Check that a deterministic run can be resumed bit for bit.

    Raises:
      UserError: it cannot.
    """
    message = f'The run in {directory} cannot continue bit for bit'
    remedy = 'leave out {deterministic}, or give another directory'
    for name, cause in _CAUSES.items():
        if name not in recorded:
            raise UserError(
                f'{message}, because {RECORD} does not have its {name}', remedy, 'deterministic'
            )
        if recorded[name] != record[name]:
            raise UserError(
                f'{message}: its {name} was {recorded[name]}, and is now {record[name]} ({cause})',
                f'restore that, or {remedy}',
                name,
                'inter_op_threads',
                'deterministic',
            )
    if record['mode'] == 'average':
        raise UserError(
            f'{message}, because the workers of {{mode}} average have lost their own weights',
            remedy,
            'mode',
            'deterministic',
        )


def progress(directory, record, is_resumed):
    """Return the progress of the run on disk that a new start continues.

    Args:
      directory: the directory of the run.
      record: the record of the new start.
      is_resumed: False if training starts at step 0. A deterministic run without a checkpoint may
        have printed log lines.

    Raises:
      UserError: the record on disk is damaged.
    """
    recorded = read(directory) if is_resumed or record['deterministic'] else {}
    # With other hyperparameters, a repeated step has another loss.
    repeats = record['deterministic'] and all(
        recorded.get(name) == value for name, value in record.items() if name != 'last_step'
    )
    return {
        'best': recorded.get('best') if is_resumed else None,
        'logged_step': recorded.get('logged_step', 0) if repeats else 0,
        'evaluated_step': recorded.get('evaluated_step', 0) if repeats and is_resumed else 0,
    }
