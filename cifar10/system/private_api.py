"""Private names of TensorFlow, imported at their first use: a newer version may lack them."""

import tensorflow.compat.v1 as tf

from cifar10.errors import UserError

_MODULES = {  # name -> its module below tensorflow.python
    'Timeline': 'client.timeline',
    'all_reduce': 'ops.collective_ops',  # not public for graphs
    'get_registered_kernels_for_op': 'framework.kernels',
    'list_local_devices': 'client.device_lib',  # TensorFlow 1.15 has no public function
}


def load(path):
    """Return a module, or a name in a module, by its path below tensorflow.python.

    Raises:
      UserError: this version of TensorFlow does not have it.
    """
    module, _, name = f'tensorflow.python.{path}'.rpartition('.')
    try:
        # What `from module import name` imports: version 1.15 has two modules pywrap_tensorflow.
        return getattr(__import__(module, fromlist=[name]), name)
    except (ImportError, AttributeError):
        raise UserError(
            f'TensorFlow {tf.__version__} lacks {module}.{name}: '
            'install the newest tested version, '
            "pip install 'tensorflow==2.21.*' (with Python 3.10 to 3.13)"
        )


def __getattr__(name):  # PEP 562
    if name not in _MODULES:
        raise AttributeError(name)
    return load(f'{_MODULES[name]}.{name}')
