"""Layout of the packages: imports point down, floor by floor; a name has one meaning."""

import ast
import glob
import os

import pytest

from tests.helpers.forks import ROOT

# From the bottom up; other top-level modules of cifar10 are the mathematics.
FLOORS = [
    {'__init__', '__version__', 'config', 'errors'},
    {'system'},
    {'data'},
    {'runs'},
    {'report'},
    {'mathematics'},
    {'evaluation'},
    {'hooks'},
    {'eval_hook', 'tensorboard_hooks'},
    {'training'},
    {'tutorial', 'distributed', 'serving'},
    {'cli'},
    {'benchmark'},
    {'scripts', 'tf1_runner'},
    {'scripts/cifar10_run'},
]


def _top(name):
    return name if name in FLOORS[-1] else name.split('/')[0]


def _floor(name):
    top = _top(name)
    return next((i for i, tops in enumerate(FLOORS) if top in tops), FLOORS.index({'mathematics'}))


def _modules(packages=('cifar10', 'tf1_runner')):
    """Return the syntax tree of each module, by its path without .py, under cifar10/ if there."""
    for package in packages:
        for path in glob.glob(os.path.join(ROOT, package, '**', '*.py'), recursive=True):
            with open(path) as source:
                tree = ast.parse(source.read())
            start = os.path.join(ROOT, 'cifar10') if package == 'cifar10' else ROOT
            yield os.path.relpath(path, start)[: -len('.py')], tree


def _imported(tree):
    """Return the imported modules of the packages and the scripts, by paths as in `_modules`.

    The import of a package counts as that of its `__init__`.
    """
    for node in ast.walk(tree):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, (ast.Import, ast.ImportFrom))
            else []
        )
        prefix = node.module + '.' if isinstance(node, ast.ImportFrom) else ''
        for name in names:
            top, *path = (prefix + name).split('.')
            if top in ('cifar10', 'scripts', 'tf1_runner'):
                yield '/'.join((path if top == 'cifar10' else [top] + path) or ['__init__'])


def test_imports_point_down():
    modules = _modules(['cifar10', 'tf1_runner', 'scripts'])
    arrows = [(name, other) for name, tree in modules for other in _imported(tree)]
    assert len(arrows) > 50
    for name, other in arrows:
        is_same = _top(name) == _top(other)
        may_be_same = _floor(name) in (0, FLOORS.index({'mathematics'})) or is_same
        assert _floor(other) < _floor(name) + may_be_same, (name, other)


def _module(path, modules):
    """Return the module of an imported path, whose last part may be a name in the module."""
    for module in (path, os.path.dirname(path)):
        for name in (module, os.path.join(module, '__init__')):
            if name in modules:
                return name
    raise AssertionError(path)


@pytest.mark.parametrize('depth', [1, None])
def test_no_cycle(depth):
    """Packages (depth 1; a top-level module counts as one) and modules import in no cycle."""
    modules = dict(_modules())
    arrows = {}
    for name, tree in modules.items():
        paths = [name, *(_module(path, modules) for path in _imported(tree))]
        box, *others = ['/'.join(path.split('/')[:depth]) for path in paths]
        arrows.setdefault(box, set()).update(set(others) - {box})
    assert any(arrows.values())
    while arrows:  # Remove what imports nothing that remains.
        leaves = [name for name, others in arrows.items() if not others & arrows.keys()]
        assert leaves, f'a cycle among {sorted(arrows)}'
        for name in leaves:
            del arrows[name]


def test_flags_stay_in_cli():
    """The tutorial is an exception: programs read its flags."""
    assert [
        name
        for name, tree in _modules()
        if not name.startswith('cli/') and name != 'tutorial/cifar10'
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == 'FLAGS'
    ] == []


def test_lower_layers_print_nothing():
    silent = ('data/', 'placement', 'report/', 'runs/', 'serving/', 'system/')
    assert [
        name
        for name, tree in _modules()
        if name.startswith(silent)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == 'print'
    ] == []
