"""Copies of the checkout with the changes of a page."""

import os
import re
import shutil

from tests.helpers.forks import ROOT


def copy(directory, changes):
    """Copy the package and the scripts to a directory; return its path.

    Args:
      directory: the directory.
      changes: dict from the name of a module to the replacements for `replace`.
    """
    for name in ('cifar10', 'scripts'):
        shutil.copytree(os.path.join(ROOT, name), str(directory / name))
    for name, replacements in changes.items():
        path = directory / 'cifar10' / name
        path.write_text(replace(path.read_text(), replacements))
    return str(directory)


def replace(text, replacements):
    """Replace patterns, each of which occurs once."""
    for old, new in replacements:
        text, count = re.subn(old, lambda match, new=new: new, text)
        assert count == 1, old
    return text


def read_module(name):
    """Return the source of a module of the package."""
    with open(os.path.join(ROOT, 'cifar10', name), encoding='utf-8') as opened:
        return opened.read()
