"""What a program gets that imports the tutorial's modules: those of this package, or the copies
beside it."""

import ast
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import sys
import tokenize

import cifar10 as _PACKAGE
from cifar10.data import dataset
from cifar10.errors import UserError
from cifar10.hparams import CLASSIC
from cifar10.tutorial import cifar10_input

NAMES = ['cifar10', 'cifar10_input']
_FILES = {
    name: os.path.join(os.path.dirname(cifar10_input.__file__), name + '.py') for name in NAMES
}
_FORMER_PACKAGES = [
    'tensorflow.models.image.cifar10',
    'tensorflow.models.tutorials.image.cifar10',
    'models.tutorials.image.cifar10',
    'tutorials.image.cifar10',
]
# their defaults
_FLAGS = {'batch_size': CLASSIC.batch_size, 'data_dir': dataset.DATA_DIR, 'use_fp16': False}
# See `function_digests`: of the functions in the versions of the tutorial from November 2015 to
# 2019, and, in the last line, of those that copies have in common, with the names of TensorFlow 1.0
# or with os.mkdir.
_PUBLISHED = """
07ac93 0cb5fb 0f6390 0fc091 114436 19a067 1bc549 1bc9d8 210701 272b90 29935c 2e9a7c 4b4710 52b330 53d9b7 53f63f 6317e7
6540c5 674e03 6aa20e 6e34fc 6e978d 75770a 77303f 7ceeef 7d1f79 7ed07d 843949 8c6f22 8d0f27 92a8f6 92d4e1 9e422d a47157
a6a52d a86643 b4a2b9 b547c3 b8ef3c b947df bfb012 c51f0d c80183 c83512 c9d3f4 cb5349 ce047d d3352c d67409 d7e482 d9d92e
e303b8 e3b350 ea2aa1 ec7258 edfa78 f0928e f623d1 f98880 fbaac8
407425 7e25ea 98c2a5 cb1765 dc1bdf f9c556""".split()


def install(program_path, own_modules):
    """Decides which modules a program gets under the tutorial's names, and says so if there are
    copies beside it.

    Args:
      program_path: its absolute path.
      own_modules: whether it gets the copies.

    Raises:
      UserError: there are no copies.
    """
    directory = os.path.dirname(program_path)
    copies, packages = _copies(program_path), _packages(directory)
    if own_modules and not copies and not packages:
        raise UserError(
            'There is no cifar10.py or cifar10_input.py of its own in %s: leave out --own-modules'
            % directory
        )
    found = list(copies.values()) + [
        os.path.join(directory, package.replace('.', os.sep)) for package in packages
    ]
    taken, former_packages = {}, _FORMER_PACKAGES + ['cifar10']
    if own_modules:
        taken = copies
        former_packages = [package for package in _FORMER_PACKAGES if package not in packages] + [
            'cifar10'
        ] * ('cifar10' not in taken)
        _say('using %s' % ' and '.join(found))
    elif found:
        _say(
            "using this package's %s, not the copies in %s (--own-modules takes them)"
            % (' and '.join(NAMES), directory)
        )
        for path in _files_of(found):
            difference = _difference(path)
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
    """Returns the paths, by name, of the tutorial's modules beside the program; `cifar10` may be a
    directory that holds them."""
    beside = os.path.join(os.path.dirname(program_path), '')
    paths = {name: beside + name + '.py' for name in NAMES}
    copies = {
        name: path
        for name, path in paths.items()
        if os.path.isfile(path) and not os.path.samefile(path, program_path)
    }
    package = beside + 'cifar10'
    if os.path.isdir(package) and not os.path.samefile(package, _PACKAGE.__path__[0]):
        copies.setdefault('cifar10', package)
    return copies


def _packages(directory):
    """Returns those of the former packages that are in the directory, with a module of the
    tutorial."""
    return [
        package
        for package in _FORMER_PACKAGES
        if any(
            os.path.isfile(os.path.join(directory, *(package.split('.') + [name + '.py'])))
            for name in NAMES
        )
    ]


def _files_of(paths):
    """Returns the files among the paths, and those of the tutorial's modules in the directories
    among them."""
    inside = [
        [path] if os.path.isfile(path) else [os.path.join(path, name + '.py') for name in NAMES]
        for path in paths
    ]
    return [path for path in sum(inside, []) if os.path.isfile(path)]


def _difference(path):
    """Compares a copy of a module with the tutorial's: names, functions, constants, defaults of
    flags. None if they agree."""
    with open(path, 'rb') as copy, open(
        _FILES[os.path.basename(path)[: -len('.py')]], 'rb'
    ) as ours:
        source, names = copy.read(), _values(ast.parse(ours.read()))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, 'lineno', None)  # none for a null byte
        return 'has a syntax error%s (%s)' % (
            ' in line %d' % line if line else '',
            getattr(error, 'msg', error),
        )
    values = _values(tree)
    added = [name for name in values if name not in names and not name.startswith('__')]
    changed = [
        name
        for name, digest in function_digests(source).items()
        if name in names and digest not in _PUBLISHED
    ]
    constants = {name: getattr(_PACKAGE, name) for name in _PACKAGE.__all__ if name.isupper()}
    settings = [
        '%s = %r' % (name, values[name])
        for name, value in constants.items()
        if values.get(name) is not None and values[name] != value
    ]
    settings += [
        '--%s=%s' % (name, value)
        for name, value in _flag_defaults(tree)
        if value != _FLAGS.get(name)
    ]
    parts = [
        (verb, found)
        for verb, found in [('has', added), ('changes', changed), ('sets', settings)]
        if found
    ]
    return ' and '.join('%s %s' % (verb, ', '.join(found)) for verb, found in parts) or None


def _values(tree):
    """Returns the functions, classes and variables of a module, by name: a variable's value if it
    is a constant, else None."""
    values = {}
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            values[statement.name] = None
        for target in getattr(statement, 'targets', []):
            # the second as in cifar10_input.IMAGE_SIZE = 32
            name = getattr(target, 'id', None) or getattr(target, 'attr', None)
            if name:
                values[name] = _constant(statement.value)
    return values


def _constant(expression):
    """Returns the value of a literal, or of a product of numbers like 64 * 4; None for any other
    expression."""
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mult):
        factors = [_constant(expression.left), _constant(expression.right)]
        return (
            factors[0] * factors[1]
            if all(isinstance(factor, (int, float)) for factor in factors)
            else None
        )
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        return None


def _flag_defaults(tree):
    """Yields the name and the default of each flag that a module defines, by tf.app.flags or
    argparse, if both are constants."""
    for call in ast.walk(tree):
        function = getattr(getattr(call, 'func', None), 'attr', '')
        if (
            isinstance(call, ast.Call)
            and call.args
            and (function.startswith('DEFINE_') or function == 'add_argument')
        ):
            arguments = {keyword.arg: keyword.value for keyword in call.keywords}
            if function != 'add_argument':
                arguments.update(zip(['flag_name', 'default_value'], call.args))
            default = arguments.get('default') or arguments.get('default_value')
            names = [name for name in map(_constant, call.args) if isinstance(name, str)]
            name = next(
                (name for name in names if name.startswith('--')), names[0] if names else None
            )
            value = default and _constant(default)
            if name and value is not None:
                yield name.lstrip('-'), value


def function_digests(source):
    """Returns the digest of each top-level function, by name, of its code without comments, unused
    strings, quotes and layout."""
    tokens = [
        token
        for token in tokenize.tokenize(io.BytesIO(source).readline)
        if token.type not in (tokenize.COMMENT, tokenize.NL)
    ]
    digests, name, words, depth = {}, None, [], 0
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        is_end = (
            token.type == tokenize.DEDENT
            or token.type == tokenize.NEWLINE
            and after.type != tokenize.INDENT
        )
        if name and depth == 0 and is_end:
            digests[name], name = hashlib.sha256(' '.join(words).encode()).hexdigest()[:6], None
        if depth == 0 and token.string == 'def':
            name, words = after.string, []
        word = {tokenize.INDENT: '>', tokenize.DEDENT: '<', tokenize.NEWLINE: ';'}.get(
            token.type, token.string
        )
        begins_statement = before.type in (tokenize.INDENT, tokenize.NEWLINE, tokenize.DEDENT)
        is_unused = (
            token.type == tokenize.STRING and begins_statement and after.type == tokenize.NEWLINE
        )
        is_end_of_unused = word == ';' and words[-1:] in (['>'], [';'], ['<'])
        if not is_unused and not is_end_of_unused:
            # formatters and 2to3 change these
            words.append(word.replace('"', "'").replace('xrange', 'range'))
    return digests


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the tutorial's modules that no copy replaces; also under `former_packages`, where they
    once were."""

    def __init__(self, taken, former_packages):
        self._taken = taken
        self._former_packages = former_packages

    def find_spec(self, fullname, path=None, target=None):
        """Returns the spec of a module of the tutorial; None for any other module.

        Raises:
          UserError: the program has a copy of cifar10_input only, which this package's cifar10
            would not use.
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
            raise UserError(
                "--own-modules takes only %s, which this package's cifar10 does not use: put a cifar10.py beside it"
                % self._taken['cifar10_input']
            )
        if path is None:
            return importlib.util.spec_from_file_location(
                'cifar10', _FILES['cifar10'], submodule_search_locations=_PACKAGE.__path__
            )
        init = os.path.join(path, '__init__.py')
        if os.path.isfile(init):
            return importlib.util.spec_from_file_location(
                'cifar10', init, submodule_search_locations=[path]
            )
        if os.path.isdir(path):
            spec = importlib.machinery.ModuleSpec('cifar10', None, is_package=True)
            spec.submodule_search_locations = [path]
            return spec
        return importlib.util.spec_from_file_location('cifar10', path)

    def create_module(self, spec):
        """Returns the module itself, under its former name too."""
        return importlib.import_module(spec.name.rpartition('.')[2])

    def exec_module(self, module):
        """Does nothing: it has been executed."""


class _FormerPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for the former packages, unless they are there: for a finder that is asked last."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the spec of a former package, or of one that it was in; None for any other."""
        if any((package + '.').startswith(fullname + '.') for package in _FORMER_PACKAGES):
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        return None

    def exec_module(self, module):
        """Does nothing: the package is empty."""
