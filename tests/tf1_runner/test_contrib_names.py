"""Names of tf.contrib; those of TensorFlow 1.15 are the original ones."""

import functools

import pytest
import tensorflow

from tf1_runner import contrib_names


@pytest.mark.skipif(not hasattr(tensorflow, 'contrib'), reason='needs TensorFlow 1.15')
@pytest.mark.parametrize('module', sorted(set(contrib_names.MODULES) - {'contrib'}))
def test_the_names_are_those_of_the_original(module):
    """A module below `python` has all names of its package."""
    original = functools.reduce(getattr, module.partition('.python')[0].split('.'), tensorflow)
    names = set(contrib_names.MODULES[module]) - {'FixedLengthRecordDataset'}  # before 1.15
    assert [name for name in names if not hasattr(original, name)] == []
