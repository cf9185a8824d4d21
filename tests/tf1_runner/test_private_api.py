"""Private names of TensorFlow: a version without them gives one line."""

import re

import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

from tests.helpers import messages, pages
from tf1_runner import private_api


def _line(name):
    return (
        f'TensorFlow {tf.__version__} lacks tensorflow.python.{name}: install the newest tested '
        "version, pip install 'tensorflow==2.21.*' (with Python 3.10 to 3.13)"
    )


def test_the_remedy_is_the_newest_tested_version():
    rows = re.findall(r'^\| (3\.[\d., ]+) \| (\d+)\.(\d+)\.\d+ \|', pages.read('versions.md'), re.M)
    newest = max((int(major), int(minor)) for _, major, minor in rows)
    pythons = [
        int(python)
        for row, *version in rows
        if tuple(map(int, version)) == newest
        for python in re.findall(r'3\.(\d+)', row)
    ]
    versions = "'tensorflow=={}.{}.*' (with Python 3.{} to 3.{})"
    assert _line('').endswith(versions.format(*newest, min(pythons), max(pythons)))


def test_a_module_without_a_name(monkeypatch):
    monkeypatch.delattr(timeline, 'Timeline')
    with messages.raises(f'^{re.escape(_line("client.timeline.Timeline"))}$'):
        private_api.load('client.timeline.Timeline')
