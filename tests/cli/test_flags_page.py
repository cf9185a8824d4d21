"""docs/flags.md is up to date and complete."""

import glob
import os
import re
import runpy
import sys

import pytest

from tests.helpers import pages, programs

DOCS = os.path.join(programs.ROOT, 'docs')
SCRIPTS = sorted(os.path.basename(path)[: -len('.py')] for path in glob.glob(programs.path('*')))


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """docs/flags.py and the scripts insert the checkout."""
    monkeypatch.setattr(sys, 'path', sys.path[:])


def test_the_page_is_up_to_date():
    generated = runpy.run_path(os.path.join(DOCS, 'flags.py'))['page']()
    assert pages.read('flags.md') == generated, 'run: python docs/flags.py'


@pytest.mark.parametrize('script', SCRIPTS)
def test_every_flag_is_on_the_page(script):
    """In the section of the script, or in a shared section that it names."""
    status, stdout, stderr = programs.call(script, '--help')
    assert (status, stderr) == (0, '')
    names = re.findall(r'^  --(?:\[no\])?(\w+): ', stdout, re.M)
    assert sorted(names) == sorted(pages.flags(script) | {'version'})
