"""The tutorial's modules, the runner of its programs, and their activation in a notebook."""

import atexit
import linecache
import os
import re
import sys
import types

from cifar10 import errors
from cifar10.system import startup

_REMEDIES = [  # (pattern of the message, remedy): the user has run a cell twice, or out of order
    (
        'already exists, disallowed|Graph is finalized',
        'run tf.reset_default_graph() first, then all cells that build the graph, in order',
    ),
    (
        'uninitialized value|Could not find variable',
        'run tf.global_variables_initializer() in this session first',
    ),
    (
        'from the same graph|not an element of this graph|graph is different|closed Session',
        'run the cells that build the graph and create the session again, in order',
    ),
]


def load_ipython_extension(unused_shell):
    """Activate TensorFlow 1, for `%load_ext cifar10.tutorial`."""
    activate()


def activate(own_modules=False):
    """Give a notebook TensorFlow 1 and the tutorial's modules, as the runner gives a program.

    Then `import tensorflow` imports TensorFlow 1, and `import cifar10` and `import cifar10_input`
    import the tutorial's modules. Flags ignore the arguments of the kernel, tf.app.run returns, and
    errors show the lines of the notebook only. A second call does nothing.

    Args:
      own_modules: use the copies of the tutorial's modules in the working directory if True.

    Raises:
      UserError: TensorFlow was imported before, or there are no copies.
    """
    tf1 = sys.modules.get('cifar10.tutorial.tf1')
    if tf1 and tf1.is_installed():
        return
    if 'tensorflow' in sys.modules and not tf1:
        raise errors.UserError(
            'TensorFlow has already been imported: restart the kernel, and run %load_ext cifar10.tutorial in the first cell'
        )
    startup.import_tensorflow()
    from cifar10.tutorial import modules, tf1

    shell = 'IPython' in sys.modules and sys.modules['IPython'].get_ipython()
    if shell:
        sys.argv = ['notebook']
        shell.set_custom_exc((Exception,), _show_error)
        # Notebooks for Colab begin with %tensorflow_version 1.x.
        shell.register_magic_function(lambda line: None, 'line', 'tensorflow_version')
    modules.install(os.path.join(os.path.realpath(os.getcwd()), ''), own_modules)
    tf1.install()
    atexit.register(tf1.close_sessions)
    tf1.adapt_to_notebook()


def _show_error(shell, error_type, error, trace, tb_offset=None):
    """Show the lines of the notebook, the message and the remedy; %tb shows the full traceback."""
    from IPython.core.error import UsageError

    from cifar10.tutorial import error_hints

    if isinstance(error, SyntaxError):
        remedy = error_hints.find_syntax_remedy(error)
        error.msg += f'; {remedy}' if remedy else ''
    if isinstance(error, (SyntaxError, UsageError)):
        shell.showtraceback()
        return
    entries = error_hints.program_entries(trace, os.path.realpath(os.getcwd()))
    shown_trace = None
    for entry in reversed(entries):
        shown_trace = types.TracebackType(
            shown_trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno
        )
    message = _message(error)
    line = entries and linecache.getline(
        entries[-1].tb_frame.f_code.co_filename, entries[-1].tb_lineno
    )
    remedies = [remedy for pattern, remedy in _REMEDIES if re.search(pattern, message)]
    remedies.append(error_hints.find_remedy(error, line))
    if remedies[0]:
        message += f'\nRemedy: {remedies[0]}'
    shell.showtraceback((error_type, Exception(message), shown_trace), tb_offset=0)
    sys.last_type, sys.last_value, sys.last_traceback = error_type, error, trace


def _message(error):
    """Return the message of an error without TensorFlow's stack, with the line of the operation."""
    if not hasattr(error, 'op'):  # not a tf.errors.OpError
        return re.sub('Originally defined at:.*', '', str(error), flags=re.DOTALL).strip()
    message = errors.one_line_message(error)
    cells = [
        linecache.getline(frame[0], frame[1]).strip()
        for frame in (error.op.traceback if error.op else [])
        if not os.path.exists(frame[0])
    ]
    cells = [line for line in cells if line]
    return f'{message}\nOperation {error.op.name!r}: {cells[-1]}' if cells else message
