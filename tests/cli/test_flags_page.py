"""docs/flags.md is up to date and complete."""

import dataclasses
import os
import re
import runpy
import sys

import pytest

from cifar10.config import HPARAMS, RECIPES, RunSettings
from tests.helpers import pages, programs

DOCS = os.path.join(programs.ROOT, 'docs')


@pytest.fixture(autouse=True)
def path(monkeypatch):
    """docs/flags.py and the scripts insert the checkout."""
    monkeypatch.setattr(sys, 'path', sys.path[:])


def test_the_page_is_up_to_date():
    generated = runpy.run_path(os.path.join(DOCS, 'flags.py'))['page']()
    assert pages.read('flags.md') == generated, 'run: python docs/flags.py'


@pytest.mark.parametrize('script', programs.SCRIPTS)
def test_every_flag_is_on_the_page(script):
    """In the section of the script, or in a shared section that it names."""
    status, stdout, stderr = programs.call(script, '--help')
    assert (status, stderr) == (0, '')
    names = re.findall(r'^  --(?:\[no\])?(\w+): ', stdout, re.M)
    assert sorted(names) == sorted(pages.flags(script) | {'version'})


def _help(field):
    return re.sub(r'--\w+', r'`\g<0>`', field.metadata['help'])


def test_every_hyperparameter_and_setting_has_a_row():
    """With help and defaults; a hyperparameter without effect has no default."""
    shared = pages.read('flags.md').partition('\n## cifar10_train.py')[0]
    rows = dict(re.findall(r'^`--(\w+)` \| ?(.*)$', shared, re.M))
    for name, field in HPARAMS.items():
        if not field.metadata['help']:
            assert name not in rows
            continue
        *defaults, text = rows[name].split('|', 3)
        assert text.strip().startswith(_help(field)), name
        for cell, recipe in zip(defaults, RECIPES.values()):
            if recipe.has_effect(name):
                assert field.type(cell.strip()) == getattr(recipe, name), name
            else:
                assert not cell.strip(), name
    for field in filter(lambda field: field.metadata, dataclasses.fields(RunSettings)):
        default, text = rows[field.name].split('| ', 1)
        assert text.strip().startswith(_help(field)), field.name
        expected = '' if field.default is None or field.default is False else str(field.default)
        assert default.strip() == expected, field.name
