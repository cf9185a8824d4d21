"""Importer of the modules that a program expects: the tutorial's, and those that are gone.

As in Python, a module of the program has precedence.
"""

import glob
import importlib
import importlib.abc
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, spec_from_file_location, spec_from_loader
import os
import re
import sys

import tensorflow.compat.v1 as tf

import cifar10
from cifar10 import errors, tutorial
from cifar10.tutorial import cifar10_input  # noqa: F401 (before 'cifar10' is removed)
from tf1_runner import mnist, remedies, scipy_misc  # noqa: F401 (likewise)

_TUTORIAL_MODULES = ['cifar10', 'cifar10_input']
_PACKAGES = [  # of the tutorial's modules, over the years
    'tensorflow.models.image.cifar10',
    'tensorflow.models.tutorials.image.cifar10',
    'models.tutorials.image.cifar10',
    'tutorials.image.cifar10',
    'cifar10',
]
_ALIASES = {  # name in a program -> module
    **{f'{package}.{name}': name for package in _PACKAGES for name in _TUTORIAL_MODULES},
    'cifar10_input': 'cifar10.tutorial.cifar10_input',
    'tensorflow.examples.tutorials.mnist.input_data': 'tf1_runner.mnist',
}

# Modules of tf.contrib.keras are also modules of tf.keras; the last group is the rest of the name.
_CONTRIB_KERAS = re.compile(
    r'tensorflow\.contrib\.keras(?:\.(?:api|python)(?:\.keras)?)?((?:\.\w+)*)'
)

# Module -> function of the imported module that returns its removed names.
_OLD_NAMES = {
    'PIL.Image': lambda module: {'ANTIALIAS': module.LANCZOS},  # tflearn reads it.
    'scipy.misc': lambda module: {'imresize': scipy_misc.imresize},
}


def install(program_path, package_modules, option):
    """Install the importer; print which modules a program gets, if it has copies of the tutorial's.

    Args:
      program_path: absolute path, without links; for a notebook its directory, with a final slash.
      package_modules: True to import this package's modules instead of the copies.
      option: what a user writes for package_modules, for messages.

    Returns:
      A function. Its argument is the text of a traceback, its result a sentence with the remedy if
      the selected modules may be the cause, or else None.
    """
    directory = os.path.dirname(program_path)
    copies = [os.path.join(directory, name + '.py') for name in _TUTORIAL_MODULES]
    copies = [path for path in copies if os.path.isfile(path) and path != program_path]
    remedy, places = None, copies
    if copies and package_modules:
        errors.warn(f"using this package's modules, not {' and '.join(copies)}")
        remedy = (
            f"this package's modules may differ from {' and '.join(copies)}: leave out {option}"
        )
        places = [os.path.dirname(tutorial.__file__)]
    elif copies:
        errors.warn(
            f"using {' and '.join(copies)} ({option} uses this package's, which are faster)"
        )
        remedy = f"if {' or '.join(copies)} is the cause: {option} uses this package's modules"
    sys.meta_path.append(_DirectoryFinder(directory))
    for name in set(_OLD_NAMES) & set(sys.modules):  # TensorFlow imports Pillow.
        _add_old_names(sys.modules[name])
    # The next imports of these names find the modules of the program or of the tutorial.
    del sys.modules['cifar10']
    sys.meta_path.insert(0, _Finder(directory, package_modules))
    return lambda trace: remedy if _is_involved(places, trace) else None


def _is_involved(places, trace):
    """Return True if a traceback goes through one of the files, or names a thing of them."""
    names = '|'.join(_TUTORIAL_MODULES)
    patterns = [*map(re.escape, places), rf"\b({names})\.(?!py\b)\w|(module|from) '({names})'"]
    function = re.search(r'\nTypeError: (\w+)\(\)', trace)
    return re.search('|'.join(patterns), trace) or (
        function
        and any(hasattr(sys.modules.get(name), function.group(1)) for name in _TUTORIAL_MODULES)
    )


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of the tutorial's modules, of gym, and of those in _ALIASES and _OLD_NAMES."""

    def __init__(self, directory, package_modules):
        self._directory = directory  # of the program
        self._package_modules = package_modules

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of a module of this finder; None for any other."""
        if fullname == 'cifar10':
            return self._find_cifar10()
        keras = _CONTRIB_KERAS.fullmatch(fullname)
        if keras and tf.__version__ >= '2':
            return self._second_name(fullname, 'tensorflow.keras' + keras.group(1))
        if fullname in _OLD_NAMES:
            return _find_with_old_names(fullname, path)
        if fullname.partition('.')[0] == 'gym' and find_spec('gymnasium'):
            return self._find_gym(fullname, path)
        if self._directory in (path or ()) and fullname.rpartition('.')[2] in _TUTORIAL_MODULES:
            return self._second_name(fullname, fullname.rpartition('.')[2])
        if fullname in _ALIASES:
            own = self._find_own(fullname, path)
            return own or self._second_name(fullname, _ALIASES[fullname])
        if any(alias.startswith(fullname + '.') for alias in _ALIASES):
            own = PathFinder.find_spec(fullname, path)
            if own is None and path is None:
                own = _find_program_package(self._directory, fullname)
            return own or spec_from_loader(fullname, self, is_package=True)
        return None

    def _find_own(self, fullname, path=None):
        """Return the spec of a module of the program; None if there is none."""
        if self._package_modules and fullname.rpartition('.')[2] in _TUTORIAL_MODULES:
            return None
        root = os.path.dirname(cifar10.__path__[0])
        places = sys.path if path is None else path  # A package of this finder has no place: [].
        places = [place for place in places if os.path.realpath(place) != root]
        return PathFinder.find_spec(fullname, places)

    def _find_cifar10(self):
        """Return the spec of the program's module or package `cifar10`, or of the tutorial's."""
        spec = self._find_own('cifar10')
        own_places = list(spec.submodule_search_locations or ()) if spec else []
        if spec and not spec.has_location and not any(map(_find_sources, own_places)):
            spec, own_places = None, []  # This directory holds data.
        program_package = _find_program_package(self._directory, 'cifar10')
        if program_package and not own_places:
            own_places = [self._directory]  # for `from cifar10 import util`
        spec = (
            spec
            or program_package
            or spec_from_file_location(
                'cifar10', os.path.join(os.path.dirname(tutorial.__file__), 'cifar10.py')
            )
        )
        # This package also imports its own modules later.
        spec.submodule_search_locations = own_places + list(cifar10.__path__)
        for name in [name for name in sys.modules if name.startswith('cifar10.')]:
            # The full name would need the package, which is not loaded.
            own = PathFinder.find_spec(name.split('.')[1], own_places)
            if own and own.has_location:
                del sys.modules[name]
        return spec

    def _find_gym(self, fullname, path):
        """Return the spec of the program's gym, or of the substitute on Gymnasium."""
        own = PathFinder.find_spec(fullname, [self._directory] if path is None else path)
        if own or fullname != 'gym':
            return own or self._second_name(fullname, f'gymnasium{fullname[len("gym") :]}')
        return spec_from_file_location(
            fullname, _path_in_package('gym.py'), submodule_search_locations=[]
        )

    def _second_name(self, fullname, module):
        """Return the spec of a module that has another name too."""
        return ModuleSpec(fullname, self, loader_state=module)

    def create_module(self, spec):
        """Return the module of a spec of `_second_name`; None for a package."""
        return importlib.import_module(spec.loader_state) if spec.loader_state else None

    def exec_module(self, module):
        """Do nothing, because create_module has imported the module."""


class _DirectoryFinder(importlib.abc.MetaPathFinder):
    """Finder of the program's directory as a package, by the name that its author's had."""

    def __init__(self, directory):
        self._directory = directory

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of a package that has a module of the program; None for any other."""
        return _find_program_package(self._directory, fullname) if path is None else None


def _find_program_package(directory, name):
    """Return the spec of the program's directory as a package.

    Return None for a package that is elsewhere, or if no file in the directory imports only modules
    of the directory from it.
    """
    if name in remedies.PACKAGES:
        return None
    imports = re.compile(
        rf'(?m)^\s*(?:from {name} import\s*(\([\w,\s]*|[\w, ]*)|(?:from|import) {name}\.(\w+))'
    )
    for source in _find_sources(directory):
        if not os.path.isfile(source):
            continue
        with open(source, encoding='utf-8', errors='replace') as file:
            found = ','.join(map(''.join, imports.findall(file.read())))
        modules = re.findall(r'(?:^|[,(])\s*(\w+)', found)  # without `as` and what follows
        is_here = modules and all(PathFinder.find_spec(module, [directory]) for module in modules)
        if is_here and not any(
            remedies.find_above(directory, f'{name}.{module}') for module in modules
        ):
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations.append(directory)
            return spec
    return None


def _find_sources(directory):
    return glob.glob(os.path.join(glob.escape(directory), '*.py'))


def _path_in_package(name):
    return os.path.join(os.path.dirname(__file__), name)


def _find_with_old_names(fullname, path):
    """Return the spec of a package's own module with names of _OLD_NAMES added, or None.

    Args:
      fullname: the name of the module.
      path: list of the directories of the package.
    """
    spec = PathFinder.find_spec(fullname, path)
    if spec is None and fullname == 'scipy.misc':  # SciPy 2
        return spec_from_file_location(fullname, _path_in_package('scipy_misc.py'))
    if spec is None:
        return None
    execute = spec.loader.exec_module

    def execute_and_add(module):
        execute(module)
        _add_old_names(module)

    spec.loader.exec_module = execute_and_add
    return spec


def _add_old_names(module):
    for name, value in _OLD_NAMES[module.__name__](module).items():
        if not hasattr(module, name):
            setattr(module, name, value)
