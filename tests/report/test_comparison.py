"""What TensorBoard's tabs HParams and Text show of runs, by TensorBoard's own reading."""

import math
import re

from google.protobuf import json_format
import pytest
from tensorboard import plugin_util
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.plugins.hparams import api_pb2, metadata
import tensorflow.compat.v1 as tf

from cifar10 import summaries
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC, FAST
from cifar10.report import comparison
from tests.helpers import events
from tests.helpers.small_run import HPARAMS, train

NUMBERS = {'num_towers': 2, 'num_examples': 100}  # of a small_run


def _record(hparams):
    return dict(
        hparams._asdict(), num_towers=1, num_examples=50000, class_names=['a|b'], last_step=1000
    )


def _read(parent):
    """For each run below a directory, what the plugin finds: a dict from tags to messages."""
    multiplexer = (
        plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(str(parent)).Reload()
    )
    parse = {
        metadata.EXPERIMENT_TAG: metadata.parse_experiment_plugin_data,
        metadata.SESSION_START_INFO_TAG: metadata.parse_session_start_info_plugin_data,
        metadata.SESSION_END_INFO_TAG: metadata.parse_session_end_info_plugin_data,
    }
    return {
        run: {tag: parse[tag](content) for tag, content in found.items()}
        for run, found in multiplexer.PluginRunToTagToContent('hparams').items()
    }


def _values(found):
    """The values of a run by name, in types of Python."""
    return json_format.MessageToDict(found[metadata.SESSION_START_INFO_TAG]).get('hparams')


def test_runs_in_one_directory_compare(tmp_path, data_dir):
    """A row for each, with all that has an effect; the columns are the same, whichever run
    TensorBoard takes them of."""
    fast = FAST._replace(epochs=0.3, warmup_epochs=0.1)
    for name, hparams in [('classic', HPARAMS), ('fast', fast)]:
        train(tmp_path / name, data_dir, 3, hparams=hparams)
    found = _read(tmp_path)
    assert sorted(found) == ['classic', 'fast']
    for name, hparams in [('classic', HPARAMS), ('fast', fast)]:
        shown = _values(found[name])
        assert 'epochs' in shown or math.isinf(hparams.epochs)
        for field, value in dict(hparams._asdict(), **NUMBERS).items():
            assert shown.pop(field, 'none') == (
                value if hparams.has_effect(field) and value != math.inf else 'none'
            )
        assert not shown
        assert found[name][metadata.SESSION_END_INFO_TAG].status == api_pb2.STATUS_SUCCESS
    columns, others = [found[name][metadata.EXPERIMENT_TAG] for name in ('classic', 'fast')]
    assert columns == others
    names = {column.name: column for column in columns.hparam_infos}
    assert (
        set(_values(found['classic'])) | set(_values(found['fast']))
        <= set(names)
        == set(CLASSIC._fields) | set(NUMBERS)
    )
    for name, value in list(_values(found['classic']).items()) + list(
        _values(found['fast']).items()
    ):
        is_word = isinstance(value, str)
        assert names[name].type == (
            api_pb2.DATA_TYPE_STRING if is_word else api_pb2.DATA_TYPE_FLOAT64
        )
        if is_word:
            assert value in [allowed.string_value for allowed in names[name].domain_discrete.values]
    first = {'recipe', 'optimizer', 'initial_learning_rate', 'batch_size', 'num_towers'}
    # as TensorBoard 1.15 shows them, and as 2 does:
    assert {column.name for column in columns.hparam_infos[:5]} == first
    assert {
        column.name
        for column in columns.hparam_infos
        if getattr(column, 'differs', column.name in first)
    } == first
    assert [metric.name.tag for metric in columns.metric_infos] == ['Precision @ 1', 'epoch']


def test_a_resumed_run_is_one_row(tmp_path, data_dir):
    """Its end is told when it has come to it, not when it has diverged."""
    with pytest.raises(UserError, match='^Training diverged at step 4'):
        train(tmp_path / 'run', data_dir, 5, checkpoint_steps=2, poison=4)
    (row,) = _read(tmp_path).values()
    assert sorted(row) == [metadata.EXPERIMENT_TAG, metadata.SESSION_START_INFO_TAG]
    for max_steps in (3, 6):
        train(tmp_path / 'run', data_dir, max_steps)
    (row,) = _read(tmp_path).values()
    assert (
        row[metadata.SESSION_END_INFO_TAG].end_time_secs
        >= row[metadata.SESSION_START_INFO_TAG].start_time_secs
        > 0
    )
    assert [step for step, _ in events.texts(tmp_path)['hyperparameters']] == [0, 2, 3]


@pytest.mark.parametrize('hparams', [CLASSIC, FAST])
def test_an_infinite_number_is_left_out(tmp_path, hparams):
    """It would be Infinity, which is no JSON: the browser would show nothing of any run."""
    with tf.Graph().as_default(), summaries.writer(
        str(tmp_path), 0, comparison.started(_record(hparams))
    ):
        pass
    (row,) = _read(tmp_path).values()
    shown = _values(row)
    assert ('epochs' in shown) == math.isfinite(hparams.epochs)
    assert not any(
        isinstance(value, float) and not math.isfinite(value) for value in shown.values()
    )
    assert ('epochs', str(hparams.epochs)) in _rows(tmp_path)


def _rows(directory):
    """Of the table in the tab Text, as the browser gets it."""
    ((_, markdown),) = events.texts(directory)['hyperparameters']
    return re.findall(
        r'<tr>\s*<td>(.*)</td>\s*<td>(.*)</td>\s*</tr>', plugin_util.markdown_to_safe_html(markdown)
    )


def test_the_hyperparameters_as_a_table(tmp_path):
    with tf.Graph().as_default(), summaries.writer(
        str(tmp_path), 0, comparison.started(_record(CLASSIC))
    ):
        pass
    rows = _rows(tmp_path)
    assert dict(rows[:-2]) == {
        name: str(value) for name, value in CLASSIC._asdict().items() if CLASSIC.has_effect(name)
    }
    assert rows[-2:] == [('num_towers', '1'), ('num_examples', '50000')]
