"""Hooks that protect a run: its directory is moved, its data files change."""

import os

import pytest

from cifar10.data import dataset
from cifar10.hooks import checkpoint_hooks
from cifar10.runs.run import open_run
from tests.helpers import messages, small_run


@pytest.mark.parametrize('replaced', [False, True])
def test_a_directory_that_is_moved(tmp_path, data_dir, replaced):
    with open_run(str(tmp_path / 'run'), small_run.job(data_dir).record) as run:
        hook = checkpoint_hooks.DirectoryHook(run)
        calls = [hook.after_create_session, hook.after_run]  # also after the queue was filled
        for call in calls:
            call(None, None)
        (tmp_path / 'run').rename(tmp_path / 'aside')
        if replaced:
            (tmp_path / 'run').mkdir()
        for call in calls:
            with messages.raises(f'^{tmp_path}/run {messages.MOVED}: put it back'):
                call(None, None)


@pytest.mark.parametrize(
    'size, complaint',
    [(100, 'data_batch_3.bin has an incomplete record'), (30 * 3073, '30 examples, not 60')],
)
def test_a_data_file_that_is_cut(own_data_dir, size, complaint):
    """Also between two records."""
    split = dataset.read(own_data_dir).train
    hook = checkpoint_hooks.DataFilesHook(split)
    hook.end(None)
    os.truncate(split.paths[2], size)
    with messages.raises(complaint):
        hook.end(None)
