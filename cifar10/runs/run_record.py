"""Record of a run: run.json in its directory.

Other starts of the run, the evaluation and the prediction read it.
"""

import dataclasses
import json
import math
import os
from typing import List, Optional

from cifar10.config import CLASSIC, HPARAMS, HParams
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.system import files

RECORD_FILE = 'run.json'
# What a resumed run must have in common with its record, if both have a value.
_SAME_DATA = ['class_names', 'num_examples', 'data_checksum']
_SAME = ['recipe', 'optimizer', *_SAME_DATA]
# What a deterministic run must have in common, too: name, and what determines it.
_SAME_IF_DETERMINISTIC = {
    'deterministic': '--deterministic',
    'seed': '--seed',
    'batch_size': '--batch_size',
    'batches_per_step': 'the numbers of towers and workers',
    'num_workers': 'the number of workers',
    'mode': '--mode',
    'version': 'the package',
    'tensorflow': 'the installed TensorFlow',
    'processor': 'the computer',
    'onednn': 'TF_ENABLE_ONEDNN_OPTS',
    'num_sub_batches': 'the number of cores, or --inter_op_threads',
    'network_checksum': 'the source of the network',
}
# Changes of these values, besides those of the hyperparameters, are printed.
_NOTED = ['num_examples', 'batches_per_step']


@dataclasses.dataclass(frozen=True)
class RunRecord:
    """Record of a run. In the file, the hyperparameters stand beside the other fields.

    A field that an early version did not record has its default.
    """

    hparams: HParams = CLASSIC
    batches_per_step: Optional[int] = None
    num_examples: Optional[int] = None  # for training
    class_names: Optional[List[str]] = None
    data_checksum: Optional[str] = None  # of the training files
    dataset: Optional[str] = None  # 'cifar10', 'cifar100' or 'synthetic'
    init_checkpoint: Optional[str] = None  # from which the run started
    last_step: float = math.inf
    seed: Optional[int] = None
    deterministic: bool = False
    num_workers: int = 1
    mode: Optional[str] = None  # of a cluster
    version: Optional[str] = None  # of this package
    tensorflow: Optional[str] = None  # its version
    processor: Optional[str] = None
    onednn: Optional[str] = None
    num_sub_batches: Optional[int] = None
    network: str = 'model'  # one of networks.names(), or the path of a file
    network_checksum: Optional[str] = None  # the SHA-256 of its source

    def flat(self):
        """Return a dict of all values by name."""
        return dict(vars(self.hparams), **{name: getattr(self, name) for name in _FIELDS})


_FIELDS = [field.name for field in dataclasses.fields(RunRecord) if field.name != 'hparams']


def exists(directory):
    """Return True if the directory of a run has a record."""
    return os.path.exists(os.path.join(directory, RECORD_FILE))


def read(directory):
    """Return the RunRecord in the directory of a run; a RunRecord without values if there is none.

    Raises:
      UserError: the record is damaged.
    """
    hint = 'delete it to train or evaluate without the record'
    return files.read_json(os.path.join(directory, RECORD_FILE), _parse, hint) or RunRecord()


def write(directory, record):
    """Write a RunRecord.

    Raises:
      UserError: it cannot be written.
    """
    # JSON has no infinity.
    values = {name: None if value == math.inf else value for name, value in record.flat().items()}
    content = json.dumps(values, indent=1, allow_nan=False)
    files.atomic_write(os.path.join(directory, RECORD_FILE), content, 'make room there')


def _parse(content):
    """Return the RunRecord of the content of a file."""
    hparams = {}
    if 'matrix_weight_decay' in content:  # Early versions had only that.
        content.setdefault('matrix_weight_rms', 0.0)
    for name, field in HPARAMS.items():
        value = content.get(name, field.default)
        hparams[name] = field.type(math.inf if value is None else value)
    if content.get('last_step') is None:
        content['last_step'] = math.inf
    if 'num_towers' in content:  # its name in early versions
        content['batches_per_step'] = content['num_towers']
    if content.get('class_names'):
        content['class_names'] = dataset.check_class_names(content['class_names'])
    return RunRecord(
        HParams(**hparams), **{name: content[name] for name in _FIELDS if name in content}
    )


def check_classes(directory, class_names):
    """Check that the run was trained on these classes, if both are known.

    Raises:
      UserError: the classes differ, or the record is damaged.
    """
    recorded = read(directory).class_names
    if recorded and class_names and recorded != list(class_names):
        raise UserError(
            f'The run in {directory} was trained on other classes ({dataset.format_class_names(recorded)}) than those of '
            f'the data ({dataset.format_class_names(class_names)}): '
            'give its data with --dataset or --data_dir, or the directory of another run'
        )


def check_resumable(directory, record):
    """Compare a new RunRecord with that on disk.

    Args:
      directory: the directory of the run.
      record: a RunRecord.

    Returns:
      `record`, with the initial checkpoint of the run on disk; notes for the user about changed
      values.

    Raises:
      UserError: the classes, recipe, optimizer, network, training files or (for schedules in
        epochs) number of examples differ, or a deterministic run cannot continue bit for bit.
    """
    if not exists(directory):
        return record, []
    found = read(directory)
    new, recorded = record.flat(), found.flat()
    _check_same(directory, recorded, new, record.hparams.is_epoch_based)
    if record.deterministic:
        _check_reproducible(directory, recorded, new)
    notes = []
    if recorded['network_checksum'] not in (None, new['network_checksum']):
        notes.append(f'The source of the network has changed: {record.network}')
    names = [name for name in HPARAMS if record.hparams.has_effect(name)]
    names += [name for name in _NOTED if recorded[name] is not None]
    if found.deterministic:
        names += ['seed', 'deterministic']
    changed = [
        f'{name} {new[name]} (was {recorded[name]})'
        for name in names
        if new[name] != recorded[name]
    ]
    if changed:
        notes.append(
            f'The run in {directory} is resumed with different hyperparameters: {", ".join(changed)}. The learning rate '
            'is that of a run with these values from its first step'
        )
    return dataclasses.replace(record, init_checkpoint=found.init_checkpoint), notes


def _check_same(directory, recorded, new, is_epoch_based):
    """Raise UserError if a resumed run has another recipe, optimizer, network or data."""
    if recorded['optimizer'] == 'muon' and not recorded['matrix_weight_rms']:
        raise UserError(
            f'The run in {directory} was trained with a weight decay of Muon, which is no longer there: '
            'evaluate it, or give another directory, or set --fresh to move the run aside'
        )
    names = list(_SAME)
    if not is_epoch_based:
        names.remove('num_examples')
    if recorded['network_checksum'] != new['network_checksum']:
        names.append('network')
    for name in names:
        if recorded[name] not in (None, new[name]):
            shown = dataset.format_class_names if name == 'class_names' else str
            remedy = 'give the same'
            if name in _SAME_DATA:
                remedy = 'give its data with --dataset or --data_dir'
            raise UserError(
                f'The run in {directory} was trained with {name} {shown(recorded[name])}, not {shown(new[name])}: '
                f'{remedy}, or another directory, or set --fresh to move the run aside'
            )


def _check_reproducible(directory, recorded, new):
    """Raise UserError if a deterministic run cannot be resumed bit for bit."""
    for name, cause in _SAME_IF_DETERMINISTIC.items():
        if recorded[name] != new[name]:
            raise UserError(
                f'The run in {directory} cannot continue bit for bit: its {name} was {recorded[name]}, and is now '
                f'{new[name]} ({cause}): restore that, or leave out --deterministic, or give another directory'
            )
