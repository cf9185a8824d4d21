"""Layout of the package: imports point down, floor by floor; a name has one meaning."""

import ast
import glob
import os

import pytest

import cifar10

PACKAGE = os.path.dirname(cifar10.__file__)
FLOORS = [  # from the bottom up; other top-level modules are the mathematics
    {'config', 'errors'},
    {'system'},
    {'data'},
    {'runs'},
    {'report'},
    {'mathematics'},
    {'evaluation'},
    {'hooks'},
    {'eval_hook'},
    {'training'},
    {'tutorial', 'distributed', 'serving'},
    {'tf1'},
    {'cli'},
    {'benchmark'},
    {'scripts'},
]


def _floor(name):
    top = name.split('/')[0]
    return next((i for i, tops in enumerate(FLOORS) if top in tops), FLOORS.index({'mathematics'}))


def _modules():
    """Return the syntax tree of each module, by its path under cifar10/ without .py."""
    for path in glob.glob(os.path.join(PACKAGE, '**', '*.py'), recursive=True):
        name = os.path.relpath(path, PACKAGE)[: -len('.py')]
        if not name.endswith('__init__'):
            with open(path) as source:
                yield name, ast.parse(source.read())


def _imported(tree):
    """Return the imported modules of the package, as paths under cifar10/, and of the scripts."""
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


@pytest.mark.parametrize('depth', [1, None])
def test_no_cycle(depth):
    """Packages (depth 1; a top-level module counts as one) and modules import in no cycle."""
    arrows = {}
    for name, tree in _modules():
        box, *others = ['/'.join(path.split('/')[:depth]) for path in [name, *_imported(tree)]]
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


def test_private_names_of_tensorflow_are_guarded():
    """An ordinary import of a name that a newer version lacks would end in a traceback."""
    assert [
        (name, node.lineno)
        for name, tree in _modules()
        for node in ast.walk(tree)
        if 'tensorflow.python'
        in (getattr(node, 'module', None) or getattr(node, 'name', None) or '')
    ] == []


def test_no_parameter_is_called_as_a_module():
    """Exceptions: a value of the class in the module, the arguments of tf.layers, and TensorFlow's
    own names, `config` and `hooks`."""
    classes = {
        (name.split('/')[-1], node.name.lower())
        for name, tree in _modules()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    assert not any('config' in _imported(tree) for _, tree in _modules())
    modules = {
        part
        for name, _ in _modules()
        for part in name.split('/')
        if (part, part.replace('_', '')) not in classes
    } - {'config', 'hooks'}
    assert [
        (name, node.name, argument.arg)
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in node.args.args + node.args.kwonlyargs
        if argument.arg in modules and name != 'tf1/batch_normalization'
    ] == []
