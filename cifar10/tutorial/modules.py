"""What a program gets that imports the tutorial's modules: those of this package, or the copies beside it."""
import ast
import importlib
import importlib.abc
import importlib.machinery
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
      program_path: its absolute path.
      own_modules: whether it gets the copies.

    Raises:
      UserError: there are no copies.
    """
    directory = os.path.dirname(program_path)
    copies, packages = _copies(program_path), _packages(directory)
    if own_modules and not copies and not packages:
        raise UserError('There is no cifar10.py or cifar10_input.py of its own in %s: leave out --own-modules' % directory)
    found = list(copies.values()) + [os.path.join(directory, package.replace('.', os.sep)) for package in packages]
    taken, former_packages = {}, _FORMER_PACKAGES + ['cifar10']
    if own_modules:
        taken = copies
        former_packages = [package for package in _FORMER_PACKAGES if package not in packages] + ['cifar10'] * ('cifar10' not in taken)
        _say('using %s' % ' and '.join(found))
    elif found:
        _say("using this package's %s, not the copies in %s (--own-modules takes them)" % (' and '.join(NAMES), directory))
        for name, path in copies.items():
            difference = _difference(name, path)
            if difference:
                _say('%s, unlike the tutorial, %s' % (path, difference))
    if 'cifar10_input' not in taken:
        sys.modules['cifar10_input'] = cifar10_input
    del sys.modules['cifar10']  # the face: from now on the name is the tutorial's module
    sys.meta_path.insert(0, _Finder(taken, former_packages))
    sys.meta_path.append(_FormerPackages())


def _say(message):
    print('cifar10_run.py: ' + message, file=sys.stderr, flush=True)


def _copies(program_path):
    """The paths, by name, of the tutorial's modules beside the program; that of `cifar10` may be a directory that holds them."""
    beside = os.path.join(os.path.dirname(program_path), '')
    paths = {name: beside + name + '.py' for name in NAMES}
    copies = {name: path for name, path in paths.items() if os.path.isfile(path) and not os.path.samefile(path, program_path)}
    package = beside + 'cifar10'
    if os.path.isdir(package) and not os.path.samefile(package, _PACKAGE.__path__[0]):
        copies.setdefault('cifar10', package)
    return copies


def _packages(directory):
    """Those of the former packages that are in the directory, with a module of the tutorial."""
    return [package for package in _FORMER_PACKAGES
            if any(os.path.isfile(os.path.join(directory, *(package.split('.') + [name + '.py']))) for name in NAMES)]


def _difference(name, path):
    """How a copy of the module `name` visibly differs from ours: in names that ours lacks, in numbers. None if it does not."""
    if os.path.isdir(path):
        return None
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
        """The spec of a module of the tutorial; None for any other module.

        Raises:
          UserError: the program has a copy of cifar10_input only, which this package's cifar10 would not use.
        """
        package, _, name = fullname.rpartition('.')
        if fullname == 'cifar10':
            return self._find_cifar10()
        if name in NAMES and package in self._former_packages:
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def _find_cifar10(self):
        path = self._taken.get('cifar10')
        if path is None and self._taken:
            raise UserError("--own-modules takes only %s, which this package's cifar10 does not use: put a cifar10.py beside it"
                            % self._taken['cifar10_input'])
        if path is None:
            return importlib.util.spec_from_file_location('cifar10', _FILES['cifar10'], submodule_search_locations=_PACKAGE.__path__)
        init = os.path.join(path, '__init__.py')
        if os.path.isfile(init):
            return importlib.util.spec_from_file_location('cifar10', init, submodule_search_locations=[path])
        if os.path.isdir(path):
            spec = importlib.machinery.ModuleSpec('cifar10', None, is_package=True)
            spec.submodule_search_locations = [path]
            return spec
        return importlib.util.spec_from_file_location('cifar10', path)

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
