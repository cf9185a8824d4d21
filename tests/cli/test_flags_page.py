"""docs/flags.md is up to date and complete."""

import glob
import os
import re
import runpy
import sys

import pytest

from tests.helpers import programs

DOCS = os.path.join(programs.ROOT, 'docs')
SCRIPTS = sorted(os.path.basename(path)[: -len('.py')] for path in glob.glob(programs.path('*')))


def _committed():
    with open(os.path.join(DOCS, 'flags.md')) as opened:
        return opened.read()


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """docs/flags.py and the scripts insert the checkout."""
    monkeypatch.setattr(sys, 'path', sys.path[:])


def test_the_page_is_up_to_date():
    generated = runpy.run_path(os.path.join(DOCS, 'flags.py'))['page']()
    assert _committed() == generated, 'run: python docs/flags.py'


@pytest.mark.parametrize('script', SCRIPTS)
def test_every_flag_is_on_the_page(script):
    """In the section of the script, or in a shared section that it names."""
    status, stdout, _ = programs.call(script, '--help')
    names = set(re.findall(r'^  --(?:\[no\])?(\w+)', stdout, re.M)) - {'version'}
    assert status == 0 and names
    sections = dict(
        section.split('\n', 1) for section in re.split('^###? ', _committed(), flags=re.M)[1:]
    )
    own = sections[script + '.py']
    tables = own + ''.join(section for title, section in sections.items() if f'[{title}](#' in own)
    assert {name for name in names if f'`--{name}`' not in tables} == set()
