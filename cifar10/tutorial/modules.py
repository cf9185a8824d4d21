"""Selection of the tutorial's modules: this package's, or copies beside the program."""

import ast
import hashlib
import importlib
import importlib.abc
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location, spec_from_loader
import inspect
import os
import sys
import tokenize

import cifar10
from cifar10 import errors
from cifar10.config import CLASSIC
from cifar10.data import dataset
from cifar10.tutorial import cifar10_input, scipy_misc

_MODULE_NAMES = ['cifar10', 'cifar10_input']
_FORMER_PACKAGES = [
    'tensorflow.models.image.cifar10',
    'tensorflow.models.tutorials.image.cifar10',
    'models.tutorials.image.cifar10',
    'tutorials.image.cifar10',
]
_PACKAGES = _FORMER_PACKAGES + ['cifar10']
# tf.layers imports tf_keras.src.legacy_tf_layers by this name.
_LEGACY_LAYERS = 'tf_keras.legacy_tf_layers'
_FLAG_DEFAULTS = {'batch_size': CLASSIC.batch_size, 'data_dir': dataset.DATA_DIR, 'use_fp16': False}
# Digests (see `_digest`) of the tutorial's functions from November 2015 to 2019. The last line has
# digests of common variants, with names of TensorFlow 1.0 or with os.mkdir.
_PUBLISHED_DIGESTS = """
07ac93 0cb5fb 0f6390 0fc091 114436 19a067 1bc549 1bc9d8 210701 272b90 29935c 2e9a7c 4b4710 52b330 53d9b7 53f63f 6317e7
6540c5 674e03 6aa20e 6e34fc 6e978d 75770a 77303f 7ceeef 7d1f79 7ed07d 843949 8c6f22 8d0f27 92a8f6 92d4e1 9e422d a47157
a6a52d a86643 b4a2b9 b547c3 b8ef3c b947df bfb012 c51f0d c80183 c83512 c9d3f4 cb5349 ce047d d3352c d67409 d7e482 d9d92e
e303b8 e3b350 ea2aa1 ec7258 edfa78 f0928e f623d1 f98880 fbaac8
407425 7e25ea 98c2a5 cb1765 dc1bdf f9c556""".split()
_LAYOUT_TOKENS = {tokenize.INDENT: '>', tokenize.DEDENT: '<', tokenize.NEWLINE: ';'}


def install(program_path, own_modules):
    """Install an importer for the tutorial's modules and for scipy.misc.

    If there are copies beside the program, print the selected modules.

    Args:
      program_path: absolute path, without links; for a notebook its directory, with a final slash.
      own_modules: import the copies if True.

    Raises:
      UserError: `own_modules` is True, but there are no copies.
    """
    directory = os.path.dirname(program_path)
    copies = _find_copies(program_path)
    if own_modules and not copies:
        raise errors.UserError(
            f'No cifar10.py or cifar10_input.py beside the program in {directory}: leave out {_option(program_path)}'
        )
    if own_modules:
        errors.warn(f'using {" and ".join(copies)}')
    elif copies:
        errors.warn(
            f"using this package's {' and '.join(_MODULE_NAMES)}, not the copies in {directory} ({_option(program_path)} uses them)"
        )
        for path in copies:
            difference = _describe_difference(path)
            if difference:
                errors.warn(f'{path}, unlike the tutorial, {difference}')
    replaced_modules = set(copies.values()) if own_modules else set()
    if 'cifar10_input' not in replaced_modules:
        sys.modules['cifar10_input'] = cifar10_input
    # The next import of this name loads the tutorial's module.
    del sys.modules['cifar10']
    sys.meta_path.insert(0, _Finder(directory, replaced_modules))


def _option(program_path):
    return '--own_modules' if os.path.basename(program_path) else 'own_modules=True'


def _find_copies(program_path):
    """Return a dict from the path of each copy beside the program to its module or package."""
    names = _MODULE_NAMES + ['cifar10.__init__']
    names += [package + '.' + name for package in _PACKAGES for name in _MODULE_NAMES]
    beside = {
        os.path.join(os.path.dirname(program_path), *name.split('.')) + '.py': name
        for name in names
    }
    return {
        path: name.rpartition('.')[0] or name
        for path, name in beside.items()
        if os.path.isfile(path)
        and path != program_path
        and not os.path.samefile(os.path.dirname(path), cifar10.__path__[0])
    }


def _describe_difference(path):
    """Return the differences of a copy from the tutorial's module; an empty string without any.

    Names, functions, constants and flag defaults are compared.
    """
    try:
        with tokenize.open(path) as opened:
            lines = opened.readlines()
        tree = ast.parse(''.join(lines), path)
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, or wrong encoding
        return f'has a syntax error: {error}'
    values = _module_values(tree)
    with open(_path_in_package(os.path.basename(path)), encoding='utf-8') as opened:
        own_tree = ast.parse(opened.read())
    names = set(_module_values(own_tree))
    for statement in own_tree.body:  # Imported names count, such as the constants.
        if isinstance(statement, ast.ImportFrom):
            names |= {alias.name for alias in statement.names}
    added = [name for name in values if name not in names and not name.startswith('__')]
    changed = [
        statement.name
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef)
        and statement.name in names
        and _digest(inspect.getblock(lines[statement.lineno - 1 :])) not in _PUBLISHED_DIGESTS
    ]
    settings = [
        f'{name} = {values[name]!r}'
        for name in cifar10.__all__
        if name.isupper() and values.get(name) not in (None, getattr(cifar10, name))
    ] + [
        f'--{name}={value}'
        for name, value in _flag_defaults(tree)
        if value != _FLAG_DEFAULTS.get(name)
    ]
    parts = [('has', added), ('changes', changed), ('sets', settings)]
    return ' and '.join(f'{verb} {", ".join(found)}' for verb, found in parts if found)


def _path_in_package(name):
    return os.path.join(os.path.dirname(__file__), name)


def _module_values(tree):
    """Return a dict of functions, classes and variables of a module.

    A value that is not a literal is None.
    """
    values = {}
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            values[statement.name] = None
        for target in getattr(statement, 'targets', []):
            # `attr` as in cifar10_input.IMAGE_SIZE = 32.
            name = getattr(target, 'id', None) or getattr(target, 'attr', None)
            if name:
                values[name] = _literal(statement.value)
    return values


def _literal(expression):
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        return None


def _flag_defaults(tree):
    """Yield name and default of each flag (tf.app.flags, argparse), if both are literals."""
    for call in ast.walk(tree):
        function = getattr(getattr(call, 'func', None), 'attr', '')
        if function.startswith('DEFINE_') or function == 'add_argument':
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            names, key = call.args, 'default_value'
            if function == 'add_argument':  # The last name is the long one.
                names, key = call.args[-1:], 'default'
            name, default = map(_literal, (names + [named.get(key)])[:2])
            if name and default is not None:
                yield name.lstrip('-'), default


def _digest(lines):
    """Return a digest of code, independent of comments, docstrings, quotes and layout."""
    tokens = []
    for token in tokenize.generate_tokens(iter(lines).__next__):
        is_unused_string = (
            token.type == tokenize.NEWLINE
            and tokens[-1].type == tokenize.STRING
            and tokens[-2].type in _LAYOUT_TOKENS
        )
        if is_unused_string:
            tokens.pop()
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
            tokens.append(token)
    text = ' '.join(_LAYOUT_TOKENS.get(token.type, token.string) for token in tokens[:-1])
    # Formatters and 2to3 change quotes and xrange.
    text = text.replace('"', "'").replace('xrange', 'range')
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _find_scipy_misc(path):
    """Return the spec of SciPy's own module with missing functions added, or of this package's.

    Args:
      path: list of the directories of the package scipy.
    """
    spec = PathFinder.find_spec('scipy.misc', path)
    if spec is None:  # SciPy 2
        return spec_from_file_location('scipy.misc', _path_in_package('scipy_misc.py'))
    execute = spec.loader.exec_module

    def execute_and_add(module):
        execute(module)
        for name, function in inspect.getmembers(scipy_misc, inspect.isfunction):
            if not hasattr(module, name):
                setattr(module, name, function)

    spec.loader.exec_module = execute_and_add
    return spec


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of the tutorial's modules, their former packages, scipy.misc and legacy layers."""

    def __init__(self, directory, replaced_modules):
        self._directory = directory  # of the program
        self._replaced_modules = (
            replaced_modules  # modules and packages with a copy beside the program
        )

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of a module of this finder; None for any other.

        Raises:
          UserError: the program has a copy of cifar10_input only.
        """
        package, _, name = fullname.rpartition('.')
        if fullname == 'cifar10':
            return self._find_cifar10()
        if fullname == 'scipy.misc':
            return _find_scipy_misc(path)
        if name in _MODULE_NAMES and package in _PACKAGES and package not in self._replaced_modules:
            return spec_from_loader(fullname, self)
        if fullname.startswith(_LEGACY_LAYERS):
            return spec_from_loader(fullname, self, is_package=fullname == _LEGACY_LAYERS)
        if any((former + '.').startswith(fullname + '.') for former in _FORMER_PACKAGES):
            own = PathFinder.find_spec(fullname, path)
            return own or spec_from_loader(fullname, self, is_package=True)
        return None

    def _find_cifar10(self):
        if 'cifar10' in self._replaced_modules:
            return PathFinder.find_spec('cifar10', [self._directory])
        if 'cifar10_input' in self._replaced_modules:
            raise errors.UserError(
                "this package's cifar10 ignores the program's own cifar10_input.py: put a cifar10.py beside it, or leave "
                'out --own_modules'
            )
        return spec_from_file_location(
            'cifar10', _path_in_package('cifar10.py'), submodule_search_locations=cifar10.__path__
        )

    def create_module(self, spec):
        """Return a module that has another name too; None for a package."""
        if spec.submodule_search_locations is not None:
            return None
        package, _, name = spec.name.rpartition('.')
        return importlib.import_module(
            f'tf_keras.src.legacy_tf_layers.{name}' if package == _LEGACY_LAYERS else name
        )

    def exec_module(self, module):
        """Do nothing, because create_module has imported the module."""
