"""Record of a run: complete, compared with a resumed run, also of an earlier version."""

import dataclasses
import hashlib
import json
import math
import os
import re

import pytest

from cifar10 import model, network, training
from cifar10.config import HPARAMS, RunSettings
from cifar10.data import dataset
from cifar10.runs import run_record
from cifar10.runs.run import open_run
from tests.helpers import fields, messages, small_run
from tests.helpers.small_run import assert_saved, job, train


@pytest.mark.parametrize('name', HPARAMS)
def test_every_hyperparameter_is_recorded(tmp_path, data_dir, name):
    """A changed one is named, unless it has no effect, or a run cannot change it."""
    field, before = HPARAMS[name], small_run.HPARAMS
    value = fields.other_value(field, getattr(before, name))
    before = fields.with_effect(before, name, getattr(before, name))
    after = dataclasses.replace(before, **{name: value})
    records = [training.record(job(data_dir, hparams)) for hparams in (before, after)]
    run_record.write(str(tmp_path), records[0])
    (recorded,) = {getattr(before, name)} - {math.inf} or {None}  # JSON has no infinity
    assert json.loads((tmp_path / 'run.json').read_text())[name] == recorded
    assert run_record.read(str(tmp_path)).hparams == before
    if name in ('recipe', 'optimizer'):
        with messages.raises(f'was trained with {name} {getattr(before, name)}, not {value}: '):
            run_record.check_resumable(str(tmp_path), records[1])
        return
    _, (note,) = run_record.check_resumable(str(tmp_path), records[1])
    assert f': {name} {value} (was {getattr(before, name)}). ' in note
    for unused in fields.without_effect(before, name):
        run_record.write(str(tmp_path), training.record(job(data_dir, unused)))
        changed = dataclasses.replace(unused, **{name: value})
        assert (
            run_record.check_resumable(str(tmp_path), training.record(job(data_dir, changed)))[1]
            == []
        )


def test_a_run_on_other_classes(tmp_path, data_dir, own_data_dir):
    train(tmp_path / 'run', data_dir, 1)
    with open(
        os.path.join(own_data_dir, dataset.CIFAR10_DIRECTORY, dataset.CLASS_NAMES_FILE), 'w'
    ) as names:
        names.write('\n'.join(dataset.CLASS_NAMES))
    complaint = (
        rf'The run in {tmp_path / "run"} was trained with class_names disc, ring, .*: give its data'
    )
    with messages.raises(complaint):
        train(tmp_path / 'run', own_data_dir, 2)
    assert_saved(tmp_path / 'run', 1)


def test_a_recipe_of_an_earlier_version(tmp_path, data_dir):
    """A run of `best` can be evaluated, but not resumed."""
    train(tmp_path, data_dir, 1)
    path = tmp_path / 'run.json'
    best = dict(recipe='best', optimizer='muon', matrix_weight_decay=1.5, matrix_weight_rms=0.0)
    path.write_text(json.dumps(dict(json.loads(path.read_text()), **best)))
    with messages.raises('a weight decay of Muon.*: evaluate it, or give another directory, or'):
        train(tmp_path, data_dir, 2)
    assert_saved(tmp_path, 1)
    assert network.of_run(str(tmp_path)).hparams.recipe == 'best'


@pytest.mark.parametrize(
    'before, after, told',
    [((1, False), (2, False), None), ((1, True), (1, False), 'deterministic False (was True)')],
)
def test_what_the_seed_fixes(tmp_path, data_dir, before, after, told):
    train(tmp_path, data_dir, 1)
    records = [
        training.record(
            job(data_dir)._replace(settings=RunSettings(seed=seed, deterministic=deterministic))
        )
        for seed, deterministic in (before, after)
    ]
    run_record.write(str(tmp_path), records[0])
    with open_run(str(tmp_path), records[1]) as run:
        assert [f'different hyperparameters: {told}. ' in note for note in run.notes] == (
            [True] if told else []
        )


def _changed(record, name, value):
    if name in HPARAMS:
        return dataclasses.replace(
            record, hparams=dataclasses.replace(record.hparams, **{name: value})
        )
    return dataclasses.replace(record, **{name: value})


@pytest.mark.parametrize(
    'name, other, cause',
    [
        ('seed', 2, '--seed'),
        ('batch_size', 64, '--batch_size'),
        ('batches_per_step', 99, 'the numbers of towers and workers'),
        ('num_workers', 2, 'the number of workers'),
        ('mode', 'sync', '--mode'),
        ('version', '0.0.0', 'the package'),
        ('tensorflow', '2.99.0', 'the installed TensorFlow'),
        ('processor', 'Another', 'the computer'),
        ('onednn', 'other', 'TF_ENABLE_ONEDNN_OPTS'),
        ('num_sub_batches', 99, 'the number of cores, or --inter_op_threads'),
        ('network_checksum', 'other', 'the source of the network'),
    ],
)
def test_a_deterministic_run_that_cannot_continue(tmp_path, data_dir, name, other, cause):
    """Without the flag, the run continues."""
    train(tmp_path, data_dir, 1)
    settings = RunSettings(seed=1, deterministic=True)
    record = training.record(job(data_dir)._replace(settings=settings))
    run_record.write(str(tmp_path), record)
    with open_run(str(tmp_path), record):
        pass
    changed = _changed(record, name, other)
    complaint = (
        f'^The run in {tmp_path} cannot continue bit for bit: its {name} was %s, and is now {other} '
        rf'\({re.escape(cause)}\): restore that, or leave out --deterministic, or give another directory$'
    )
    with messages.raises(complaint % re.escape(str(record.flat()[name]))):
        open_run(str(tmp_path), changed).__enter__()
    with open_run(str(tmp_path), dataclasses.replace(changed, deterministic=False)) as run:
        assert 'deterministic False (was True)' in run.notes[-1]


def test_a_changed_network_is_named(tmp_path, data_dir):
    """Not that of an earlier version, which recorded none."""
    record = training.record(job(data_dir))
    with open(model.__file__, 'rb') as source:
        checksum = hashlib.sha256(source.read()).hexdigest()
    assert (record.network, record.network_checksum) == ('model', checksum)
    for recorded, notes in [
        (checksum, []),
        (None, []),
        ('other', ['The source of the network has changed: model']),
    ]:
        run_record.write(str(tmp_path), dataclasses.replace(record, network_checksum=recorded))
        assert run_record.check_resumable(str(tmp_path), record) == (record, notes)


def test_another_network(tmp_path, data_dir):
    """A file may have moved."""
    record = training.record(job(data_dir))
    run_record.write(str(tmp_path), record)
    moved = dataclasses.replace(record, network='/x/mine.py')
    assert run_record.check_resumable(str(tmp_path), moved)[1] == []
    other = dataclasses.replace(moved, network_checksum='other')
    with messages.raises('was trained with network model, not /x/mine.py: give the same, or ano'):
        run_record.check_resumable(str(tmp_path), other)


@pytest.mark.parametrize(
    'content, fault',
    [
        ('{"num_towers": 1,}', '.+'),
        ('[]', '.+'),
        ('{"batch_size": "many"}', '.*many.*'),
        ('{"optimizer": "other"}', "optimizer is 'other'"),
        (f'{{"epochs": 1{"0" * 400}}}', '.+'),
        ('{"class_names": ["a\\nb", "c"]}', '.* is not a class name'),
    ],
)
def test_a_damaged_record(tmp_path, content, fault):
    path = tmp_path / 'run.json'
    path.write_text(content)
    with messages.raises(rf'^{path} is damaged \({fault}.*\): delete it'):
        run_record.read(str(tmp_path))


def test_a_record_of_an_earlier_version(tmp_path, data_dir, capsys):
    train(tmp_path, data_dir, 1)
    record = json.loads((tmp_path / 'run.json').read_text())
    kept = ['initial_learning_rate', 'num_epochs_per_decay', 'moving_average_decay']
    early = dict({name: record[name] for name in kept}, num_towers=2, last_step=None)
    early['best'] = {'checkpoint': 'best.ckpt-1', 'precision': 0.5}  # up to version 1.8.0
    (tmp_path / 'run.json').write_text(json.dumps(early))
    assert run_record.read(str(tmp_path)).hparams == small_run.HPARAMS
    read = run_record.read(str(tmp_path))
    assert (read.last_step, read.batches_per_step) == (math.inf, 2)
    train(tmp_path, data_dir, 2)
    assert 'resumed with' not in capsys.readouterr().out


def test_the_record_is_strict_json(tmp_path, data_dir, capsys):
    """JSON has no infinity; resumed runs and the evaluation read the infinite epochs back."""

    def refuse(constant):
        raise AssertionError(constant)

    train(tmp_path, data_dir, 1)
    content = (tmp_path / 'run.json').read_text()
    assert json.loads(content, parse_constant=refuse)['epochs'] is None
    assert (
        run_record.read(str(tmp_path)).hparams == small_run.HPARAMS
        and small_run.HPARAMS.epochs == math.inf
    )
    train(tmp_path, data_dir, 2)
    assert 'resumed with' not in capsys.readouterr().out


def test_another_number_of_examples(tmp_path, data_dir, capsys):
    """Records of early versions have no checksum of the data."""
    train(tmp_path, data_dir, 2)
    path = tmp_path / 'run.json'
    record = dict(json.loads(path.read_text()), num_examples=200)
    del record['data_checksum']
    path.write_text(json.dumps(record))
    with messages.raises('was trained with num_examples 200, not 300: give its data'):
        train(tmp_path, data_dir, 3)
    train(
        tmp_path,
        data_dir,
        3,
        hparams=dataclasses.replace(small_run.HPARAMS, learning_rate_decay_factor=1.0),
    )
    assert 'num_examples 300 (was 200)' in capsys.readouterr().out


def test_other_images(tmp_path, data_dir, own_data_dir):
    """Equal files in another directory are the same data."""
    train(tmp_path / 'run', data_dir, 1)
    train(tmp_path / 'run', own_data_dir, 2)
    with open(dataset.read(own_data_dir).train.paths[2], 'r+b') as changed:
        changed.seek(-1, os.SEEK_END)
        (value,) = changed.read(1)
        changed.seek(-1, os.SEEK_END)
        changed.write(bytes([value ^ 1]))
    with messages.raises(
        f'^The run in {tmp_path}/run was trained with data_checksum .*: give its data with --dataset or --data_dir, '
    ):
        train(tmp_path / 'run', own_data_dir, 3)
    assert_saved(tmp_path / 'run', 2)
