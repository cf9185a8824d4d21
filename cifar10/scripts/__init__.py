"""The scripts as modules: `from cifar10.scripts.cifar10_multi_gpu_train import train`."""

import os

# A checkout has the modules in scripts/; an installation has them in this directory.
__path__.append(os.path.join(os.path.dirname(__path__[0]), os.pardir, 'scripts'))
