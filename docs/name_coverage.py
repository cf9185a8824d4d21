"""Counts what a program finds under cifar10_run.py of the public names of TensorFlow 1.15.

python docs/name_coverage.py PYTHON_WITH_TENSORFLOW_1_15          # the counts of docs/tf1.md
python docs/name_coverage.py PYTHON_WITH_TENSORFLOW_1_15 missing  # the names with nothing
"""

import collections
import functools
import inspect
import json
import os
import re
import subprocess
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, ROOT)  # Import from this checkout.
KINDS = ['there', 'a package', 'a sentence', 'nothing']


def list_names():
    """Return the sorted names in the public modules of TensorFlow 1.15, such as nn.relu."""
    import tensorflow

    names, seen, queue = [], {'tensorflow.compat'}, [('', tensorflow)]
    for prefix, module in queue:
        members = [(name, getattr(module, name)) for name in dir(module) if name[0] != '_']
        for name, value in members:
            if not isinstance(value, types.ModuleType):
                if _belongs(value, prefix):
                    names.append(prefix + name)
            elif _is_part(value, module) and value.__name__ not in seen and name != 'compat':
                seen.add(value.__name__)
                queue.append((f'{prefix}{name}.', value))
    return sorted(names)


def _is_part(module, owner):
    """Return True for a public module of a package; others are imports of other modules."""
    contrib = re.match(r'tensorflow(_core)?\.contrib\.\w+', owner.__name__)
    public = re.escape(contrib[0]) if contrib else r'tensorflow.*\b_?(api|contrib)\b'
    return hasattr(owner, '__path__') and re.match(public, module.__name__)


def _belongs(value, prefix):
    """Return False for what a module of tf.contrib only imports: other packages, operations."""
    if type(value).__module__ == '__future__':
        return False
    if not (inspect.isroutine(value) or inspect.isclass(value)) or prefix[:7] != 'contrib':
        return True
    return re.match(r'tensorflow(?!.*(\.util\.deprecation|\.gen_\w+)$)', value.__module__ or '')


def find_kinds(names):
    """Return a dict from the names to what a program finds under the runner, one of KINDS."""
    from cifar10.tf1 import error_hints, tensorflow_1

    tensorflow_1.install()
    tensorflow = sys.modules['tensorflow']

    def find(name):
        try:
            functools.reduce(getattr, name.split('.'), tensorflow)
        except Exception as error:
            remedy = error_hints.find_remedy(error, [], ROOT)
            if not remedy or 'has remedies for removed names' in remedy:
                return 'nothing'
            return 'a package' if 'make it available' in remedy else 'a sentence'
        return 'there'

    return {name: find(name) for name in names}


def table(kinds):
    """Return the table of the counts per module in Markdown; complete modules share a line."""
    counts = collections.defaultdict(collections.Counter)
    for name, kind in kinds.items():
        counts[re.match(r'(contrib\.)?\w+(?=\.)|', name)[0]][kind] += 1
    complete = [module for module in counts if set(counts[module]) == {'there'}]
    rows = [
        (f'`tf.{module}`' if module else '`tf`', counts.pop(module))
        for module in sorted(set(counts) - set(complete))
    ]
    rows.append((f'{len(complete)} other modules', sum(counts.values(), collections.Counter())))
    rows.append(('all', collections.Counter(kinds.values())))
    lines = [['module', 'names', *KINDS], ['---'] * (2 + len(KINDS))]
    for title, row in rows:
        lines.append([title, str(sum(row.values()))] + [str(row[kind] or '') for kind in KINDS])
    return ''.join(f'| {" | ".join(line)} |\n'.replace('  ', ' ') for line in lines)


def main(arguments):
    """Print what the module's docstring says."""
    if arguments == ['--list']:
        print(json.dumps(list_names()))
        return
    command = [arguments[0], os.path.realpath(__file__), '--list']
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    kinds = find_kinds(json.loads(output.splitlines()[-1]))  # TensorFlow also prints.
    if arguments[1:] == ['missing']:
        print(*[name for name, kind in kinds.items() if kind == 'nothing'], sep='\n')
    else:
        print(table(kinds), end='')


if __name__ == '__main__':
    main(sys.argv[1:])
