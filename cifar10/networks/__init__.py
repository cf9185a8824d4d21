"""Networks: modules with `inference` and, if they like, `loss`, as cifar10.model.

The functions here import no TensorFlow, except `load`.
"""

import functools
import hashlib
import importlib
import importlib.util
import os
import sys

from cifar10.errors import UserError

DEFAULT = 'model'  # the book's network, cifar10.model


def names():
    """Return the names of the networks of this package."""
    files = sorted(os.listdir(os.path.dirname(__file__)))
    return [DEFAULT] + [name[:-3] for name in files if name[0] != '_' and name.endswith('.py')]


def check(choice):
    """Check the name of a network, or the path of a file with one.

    Raises:
      UserError: there is no such network.
    """
    if choice not in names() and not (choice.endswith('.py') and os.path.isfile(choice)):
        raise UserError(
            f'There is no network {choice}: give {", ".join(names())} or the path of a .py file'
        )


@functools.lru_cache(maxsize=None)
def load(choice):
    """Import a network.

    Args:
      choice: one of `names`, or the path of a Python file.

    Returns:
      The module, and the SHA-256 of its source.

    Raises:
      UserError: there is no such network, or it has no `inference`.
    """
    check(choice)
    if choice == DEFAULT:
        module = importlib.import_module('cifar10.model')
    elif choice in names():
        module = importlib.import_module(f'{__name__}.{choice}')
    else:
        name = 'network_file_' + os.path.basename(choice)[:-3]
        spec = importlib.util.spec_from_file_location(name, choice)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    if not hasattr(module, 'inference'):
        raise UserError(f'{choice} has no function inference: see docs/exercises.md')
    with open(module.__file__, 'rb') as source:
        return module, hashlib.sha256(source.read()).hexdigest()
