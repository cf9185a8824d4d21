"""No content of a file is executed or unpickled."""

import ast
import glob
import os
import pickle

import cifar10
from cifar10.data import python_version

PACKAGE = os.path.dirname(cifar10.__file__)
MODULES = {'pickle', 'cPickle', 'marshal', 'shelve', 'yaml', 'dill', 'joblib', 'code', 'runpy'}
FUNCTIONS = {'eval', 'exec', 'compile', '__import__'}
ATTRIBUTES = {
    ('np', 'load'),
    ('numpy', 'load'),
    ('os', 'system'),
    ('os', 'popen'),
    ('tf', 'py_func'),
    ('tf', 'py_function'),
}
RUNNER = os.path.join('tutorial', 'runner.py')  # it runs the program of the user
# It reads pickles with an unpickler that knows a few harmless types.
UNPICKLER = os.path.join('data', 'python_version.py')


def _trees():
    for path in glob.glob(os.path.join(PACKAGE, '**', '*.py'), recursive=True):
        name = os.path.relpath(path, PACKAGE)
        if name != RUNNER:
            with open(path) as source:
                yield name, ast.parse(source.read())


def _forbidden(node):
    """Return True if the node of a syntax tree imports or calls a function that executes data."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [alias.name for alias in node.names] + [getattr(node, 'module', None) or '']
        return any(name.split('.')[0] in MODULES for name in names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in FUNCTIONS
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in ATTRIBUTES
    )


def test_nothing_is_executed():
    trees = dict(_trees())
    assert len(trees) > 30
    found = [
        (name, ast.dump(node))
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if _forbidden(node)
    ]
    assert found == [(UNPICKLER, ast.dump(ast.parse('import pickle').body[0]))]
    used = {
        node.attr
        for node in ast.walk(trees[UNPICKLER])
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == 'pickle'
    }
    assert used == {'_Unpickler', 'UnpicklingError', 'BUILD', 'SETITEM', 'SETITEMS'}
    assert 'find_class' in vars(python_version._Unpickler)
    executing = 'INST OBJ NEWOBJ NEWOBJ_EX EXT1 EXT2 EXT4 PERSID BINPERSID'
    opcodes = {getattr(pickle, name)[0] for name in executing.split()}
    assert not opcodes & set(python_version._Unpickler.dispatch)


def test_what_is_forbidden_is_seen():
    for line in [
        'import pickle',
        'from yaml import load',
        'import numpy, marshal',
        'eval("1")',
        'np.load(path)',
        'exec(text)',
        'def f():\n    return [np.load(path) for path in paths]',
    ]:
        assert any(_forbidden(node) for node in ast.walk(ast.parse(line))), line
    for line in [
        'session.eval(x)',
        'json.load(opened)',
        'import code_names',
        'loaded = np.loadtxt',
    ]:
        assert not any(_forbidden(node) for node in ast.walk(ast.parse(line))), line
