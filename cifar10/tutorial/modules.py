"""What a program gets that imports the tutorial's modules: those of this package, or the copies beside it."""
import ast
import importlib
import importlib.abc
import importlib.util
import os
import sys

import cifar10 as _PACKAGE
from cifar10.errors import UserError
from cifar10.tutorial import cifar10_input

NAMES = ['cifar10', 'cifar10_input']
_FILES = {name: os.path.join(os.path.dirname(cifar10_input.__file__), name + '.py') for name in NAMES}
_FORMER_PACKAGES = ['tensorflow.models.image.cifar10', 'tensorflow.models.tutorials.image.cifar10',
                    'models.tutorials.image.cifar10', 'tutorials.image.cifar10']


def install(program_path, own_modules):
    """Decides which modules a program gets under the tutorial's names, and says so if there are copies beside it.

    Args:
      program_path: its path.
      own_modules: whether it gets the copies.

    Raises:
      UserError: there are no copies.
    """
    copies = _copies(program_path)
    directory = os.path.dirname(os.path.abspath(program_path))
    if own_modules and not copies:
        raise UserError('There is no cifar10.py, cifar10_input.py or package cifar10 in %s: leave out --own-modules' % directory)
    taken = copies if own_modules else {}
    if taken:
        _say('using %s' % ' and '.join(taken.values()))
    elif copies:
        _say("using this package's %s, not the copies in %s (--own-modules takes them)" % (' and '.join(NAMES), directory))
        for name, path in copies.items():
            difference = _difference(name, path)
            if difference:
                _say('%s, unlike the tutorial, %s' % (path, difference))
    if 'cifar10_input' not in taken:
        sys.modules['cifar10_input'] = cifar10_input
    del sys.modules['cifar10']  # the face: from now on the name is the tutorial's module
    sys.meta_path.insert(0, _Finder(taken, _FORMER_PACKAGES + ([] if 'cifar10' in taken else ['cifar10'])))
    sys.meta_path.append(_FormerPackages())


def _say(message):
    print('cifar10_run.py: ' + message, file=sys.stderr, flush=True)


def _copies(program_path):
    """The paths, by name, of the tutorial's modules beside the program; `cifar10` may be a package that holds them."""
    beside = os.path.join(os.path.dirname(os.path.abspath(program_path)), '')
    paths = [('cifar10', beside + 'cifar10.py'), ('cifar10_input', beside + 'cifar10_input.py'),
             ('cifar10', os.path.join(beside + 'cifar10', '__init__.py'))]
    return {name: path for name, path in paths if os.path.isfile(path) and not os.path.samefile(path, program_path)}


def _difference(name, path):
    """How a copy of the module `name` visibly differs from ours: in names that ours lacks, in numbers. None if it does not."""
    ours, copy = _top_level(_FILES[name]), _top_level(path)
    constants = {constant: getattr(_PACKAGE, constant) for constant in _PACKAGE.__all__ if constant.isupper()}
    changed = ['%s = %r' % (constant, copy[constant]) for constant, value in constants.items()
               if isinstance(copy.get(constant), (int, float)) and copy[constant] != value]
    added = [key for key in copy if key not in ours and not key.startswith('__')]
    parts = (['has %s' % ', '.join(added)] if added else []) + (['sets %s' % ', '.join(changed)] if changed else [])
    return ' and '.join(parts) or None


def _top_level(path):
    """The functions, classes and variables of a module, by name: a variable's value if it is a literal, else None."""
    with open(path, 'rb') as source:
        try:
            statements = ast.parse(source.read()).body
        except SyntaxError:  # of Python 2
            return {}
    names = {}
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names[statement.name] = None
        for target in getattr(statement, 'targets', []):
            if isinstance(target, ast.Name):
                names[target.id] = _literal(statement.value)
    return names


def _literal(expression):
    try:
        return ast.literal_eval(expression)
    except ValueError:
        return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the tutorial's modules that no copy replaces; also under `former_packages`, where they once were."""

    def __init__(self, taken, former_packages):
        self._taken = taken
        self._former_packages = former_packages

    def find_spec(self, fullname, path=None, target=None):
        """The spec of a module of the tutorial; None for any other module."""
        package, _, name = fullname.rpartition('.')
        if fullname == 'cifar10' and fullname not in self._taken:
            return importlib.util.spec_from_file_location(fullname, _FILES[name], submodule_search_locations=_PACKAGE.__path__)
        if name in NAMES and package in self._former_packages:
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def create_module(self, spec):
        """The module itself, under its former name too."""
        return importlib.import_module(spec.name.rpartition('.')[2])

    def exec_module(self, module):
        """Nothing: it has been executed."""


class _FormerPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for the former packages, unless they are there: for a finder that is asked last."""

    def find_spec(self, fullname, path=None, target=None):
        """The spec of a former package, or of one that it was in; None for any other."""
        if any((package + '.').startswith(fullname + '.') for package in _FORMER_PACKAGES):
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        return None

    def exec_module(self, module):
        """Nothing: the package is empty."""
