"""Counts which public names of TensorFlow 1.15 a program finds under the runner.

python3.7 docs/name_coverage.py list > names.txt      # with TensorFlow 1.15
python docs/name_coverage.py count names.txt          # with TensorFlow 2: the table of docs/tf1.md
python docs/name_coverage.py missing names.txt        # names without a remedy of their own
"""

import collections
import os
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# contrib.quantization has all operations of TensorFlow.
_NOT_PUBLIC = {'tf.compat', 'tf.python', 'tf.core', 'tf.tools', 'tf.contrib.quantization'}


def list_names(module, path='tf'):
    """Yield the dotted names of a module and of its submodules."""
    for name in sorted(dir(module)):
        dotted = f'{path}.{name}'
        if name[0] == '_' or dotted in _NOT_PUBLIC:
            continue
        try:
            value = getattr(module, name)
        except Exception:  # The imports of some parts of tf.contrib fail.
            continue
        # Modules also have the modules that they import.
        if not isinstance(value, types.ModuleType):
            yield dotted
        elif value.__name__.endswith(dotted[len('tf') :]):
            yield from list_names(value, dotted)


def find_remedy(dotted):
    """Return None for a name that is there, or the remedy, without a general one ''."""
    from cifar10.tf1 import error_hints

    _, *parts = dotted.split('.')
    value = sys.modules['tensorflow']
    try:
        for part in parts:
            value = getattr(value, part)
    except (AttributeError, ImportError) as error:
        remedy = error_hints.find_remedy(error, [], '/') or ''
        return '' if 'docs/tf1.md' in remedy else remedy
    return None


def count(remedies):
    """Print a row per module: names that are there, that have a remedy, and the others."""
    counts = collections.defaultdict(collections.Counter)
    for dotted, remedy in remedies.items():
        parts = dotted.split('.')
        module = '.'.join(parts[: 3 if parts[1] == 'contrib' else 2][: len(parts) - 1])
        kind = 'there' if remedy is None else 'remedy' if remedy else 'none'
        for row in (module, 'all'):
            counts[row][kind] += 1
    print('| module | there | remedy | neither |\n|---|---|---|---|')
    for module, kinds in counts.items():
        print(f'| {module} | {kinds["there"]} | {kinds["remedy"]} | {kinds["none"]} |')


def main():
    """List, count, or print what is missing."""
    command = sys.argv[1]
    if command == 'list':
        import tensorflow

        print(*list_names(tensorflow), sep='\n')
        return
    from cifar10.tf1 import tensorflow_1

    tensorflow_1.install()
    with open(sys.argv[2]) as file:
        remedies = {dotted: find_remedy(dotted) for dotted in file.read().split()}
    if command == 'count':
        count(remedies)
    else:
        print(*(dotted for dotted, remedy in remedies.items() if remedy == ''), sep='\n')


if __name__ == '__main__':
    main()
