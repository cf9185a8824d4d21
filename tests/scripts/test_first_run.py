"""README's first commands: TensorBoard shows what getting_started.md promises."""

import os
import re

import pytest
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.plugins.custom_scalar import layout_pb2
import tensorflow.compat.v1 as tf

from cifar10.report import figures
from tests.helpers import pages, programs

pytestmark = pytest.mark.slow

# The names of the tabs in event files
PLUGINS = {
    'Scalars': 'scalars',
    'Histograms': 'histograms',
    'Images': 'images',
    'Text': 'text',
    'Custom Scalars': 'custom_scalars',
}
LAST_STEP = 19  # of an epoch of 300 examples, 16 per step


def _promised():
    """Return the table of the page: {tab: [content of train, content of eval]}."""
    section = pages.read('getting_started.md').partition('\n## TensorBoard\n')[2]
    layers = re.findall('`(.*?)`', re.search('LAYER is (.*)', section).group(1))
    table = {}
    for row in re.findall(r'^\| (\w[\w ]*) \|(.*)\|(.*)\|$', section, re.M):
        table[row[0]] = [
            {
                name.replace('LAYER', layer)
                for name in re.findall('`(.*?)`', cell)
                for layer in (layers if 'LAYER' in name else [''])
            }
            for cell in row[1:]
        ]
    return table


def _read(directory):
    return plugin_event_accumulator.EventAccumulator(
        str(directory), size_guidance={plugin_event_accumulator.TENSORS: 0}
    ).Reload()


def _tags(read, tab):
    return {
        tag
        for tag in read.Tags()['tensors']
        if read.SummaryMetadata(tag).plugin_data.plugin_name == PLUGINS[tab]
    }


@pytest.fixture(scope='module')
def written(tmp_path_factory, data_dir):
    """Run the two commands on a small data set; return what TensorBoard reads of each directory."""
    directory = tmp_path_factory.mktemp('first_run')
    commands = [
        item.text for item in pages.items('README.md') if '/tmp/synthetic_train' in item.text
    ]
    small = ['--data_dir=' + data_dir]
    for command, flags in zip(commands, [small + ['--batch_size=8'], small]):
        _, script, *arguments = command.replace('/tmp/', f'{directory}/').split()
        name = os.path.basename(script)[: -len('.py')]
        assert programs.call(name, *arguments, *flags)[0::2] == (0, ''), command
    return [_read(directory / name) for name in ('synthetic_train', 'synthetic_eval')]


def test_the_tags_of_the_page(written):
    promised = _promised()
    if not figures.is_available():
        promised['Images'][1].clear()
    for tab in ('Scalars', 'Histograms', 'Images', 'Text'):
        assert [_tags(read, tab) for read in written] == promised[tab], tab
    assert all(read.Graph().node for read in written)
    assert len(written[0].PluginTagToContent('hparams')) == 3  # the columns, the row, its end


def test_the_charts_of_the_page(written):
    """Each has a curve."""
    for read, titles in zip(written, _promised()['Custom Scalars']):
        (tag,) = _tags(read, 'Custom Scalars')
        layout = layout_pb2.Layout.FromString(
            tf.make_ndarray(read.Tensors(tag)[0].tensor_proto).item()
        )
        charts = {
            chart.title
            for chart in layout.category[0].chart
            for wanted in chart.multiline.tag
            if any(re.match(wanted, scalar) for scalar in _tags(read, 'Scalars'))
        }
        assert charts == titles


def test_the_first_and_the_last_step_of_a_short_run(written):
    for tab in ('Scalars', 'Histograms', 'Images'):
        for tag in _promised()[tab][0]:
            steps = [event.step for event in written[0].Tensors(tag)]
            assert steps == ([LAST_STEP] if tag == 'Precision @ 1' else [1, 11, LAST_STEP]), tag
