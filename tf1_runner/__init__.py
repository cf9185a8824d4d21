"""TensorFlow 1 for programs and notebooks: the runner, and names that TensorFlow has removed."""

import os
import sys

if 'cifar10.errors' not in sys.modules:
    # A notebook's own cifar10.py would hide the package beside this one.
    sys.modules.pop('cifar10', None)
    sys.path.insert(0, os.path.dirname(__path__[0]))
    import cifar10  # noqa: F401 (its modules are imported later)

    del sys.path[0]

from tf1_runner.ipython import activate, load_ipython_extension  # noqa: F401 (public names)
