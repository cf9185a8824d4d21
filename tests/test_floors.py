"""The layout of the package: imports point down, floor by floor, and names mean one thing."""

import ast
import functools
import glob
import os

import cifar10

PACKAGE = os.path.dirname(cifar10.__file__)
FLOORS = [  # from the bottom up; every other module on top is part of the mathematics
    {'config', 'errors'},
    {'system'},
    {'data'},
    {'runs'},
    {'report'},
    {'mathematics'},
    {'evaluation', 'hooks', 'training'},
    {'tutorial', 'distributed', 'serving'},
    {'benchmark'},
    {'cli'},
    {'scripts'},
]


def _floor(name):
    top = name.split('/')[0]
    return next((i for i, tops in enumerate(FLOORS) if top in tops), FLOORS.index({'mathematics'}))


def _modules():
    """Each module's path under cifar10/, without .py, and its syntax tree."""
    for path in glob.glob(os.path.join(PACKAGE, '**', '*.py'), recursive=True):
        name = os.path.relpath(path, PACKAGE)[: -len('.py')]
        if not name.endswith('__init__'):
            with open(path) as source:
                yield name, ast.parse(source.read())


def _imported(tree):
    """The modules that a module imports of the package, as paths under cifar10/, and of the
    scripts."""
    for node in ast.walk(tree):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, (ast.Import, ast.ImportFrom))
            else []
        )
        prefix = node.module + '.' if isinstance(node, ast.ImportFrom) else ''
        for name in names:
            top, *path = (prefix + name).split('.')
            if top in ('cifar10', 'scripts'):
                yield '/'.join(path if top == 'cifar10' else [top] + path)


def test_imports_point_down():
    arrows = [(name, other) for name, tree in _modules() for other in _imported(tree)]
    assert len(arrows) > 50
    for name, other in arrows:
        is_same = name.split('/')[0] == other.split('/')[0]
        may_be_same = _floor(name) in (0, FLOORS.index({'mathematics'})) or is_same
        assert _floor(other) < _floor(name) + may_be_same, (name, other)


def test_there_are_few_modules_in_short_chains():
    trees = dict(_modules())
    assert len(trees) <= 90

    @functools.lru_cache(None)
    def chain(name):  # a cycle of imports ends in a RecursionError
        return 1 + max(
            (chain(other) for other in _imported(trees[name]) if other in trees), default=0
        )

    assert max(map(chain, trees)) <= 12


def test_flags_stay_in_cli():
    """But for those of the tutorial, which programs read."""
    assert [
        name
        for name, tree in _modules()
        if not name.startswith('cli/') and name != 'tutorial/cifar10'
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == 'FLAGS'
    ] == []


def test_no_parameter_is_called_as_a_module():
    """But for the value of the class that the module defines: hparams is an HParams."""
    classes = {
        (name.split('/')[-1], node.name.lower())
        for name, tree in _modules()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    modules = {
        part for name, _ in _modules() for part in name.split('/') if (part, part) not in classes
    }
    assert [
        (name, node.name, argument.arg)
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in node.args.args + node.args.kwonlyargs
        if argument.arg in modules
    ] == []
