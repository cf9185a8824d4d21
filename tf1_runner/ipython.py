"""Activation of TensorFlow 1 in a notebook, and its error messages there."""

import atexit
import linecache
import os
import re
import sys
import types

from cifar10 import errors
from cifar10.system import startup

_REMEDIES = [  # (pattern of the message, remedy): a cell was run twice or out of order
    (
        '^Variable .* already exists, disallowed|Graph is finalized',
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
    ('^flag --', 'assign another value: FLAGS.NAME = VALUE'),
]


def load_ipython_extension(unused_shell):
    """Activate TensorFlow 1, for `%load_ext tf1_runner`."""
    activate()


def activate(package_modules=False):
    """Give a notebook TensorFlow 1 and the tutorial's modules, as the runner gives a program.

    Then `import tensorflow` imports TensorFlow 1, and `import cifar10` and `import cifar10_input`
    import the tutorial's modules. Flags ignore the arguments of the kernel, tf.app.run returns, and
    errors show the lines of the notebook only. A second call does nothing.

    Args:
      package_modules: True to import the tutorial's modules of this package, not copies in the
        working directory.

    Raises:
      UserError: TensorFlow was imported before, or there is no usable temporary directory.
    """
    active = sys.modules.get('tf1_runner.tensorflow_1')
    if 'tensorflow' in sys.modules and not active:
        raise errors.UserError(
            'TensorFlow has already been imported: '
            'restart the kernel, and run %load_ext tf1_runner in the first cell'
        )
    if not active:
        startup.import_tensorflow()
    shell = 'IPython' in sys.modules and sys.modules['IPython'].get_ipython()
    if shell:
        shell.set_custom_exc((Exception, KeyboardInterrupt), _show_error)
    if active and active.is_installed():
        return
    from tf1_runner import modules, queue_errors, sessions, tensorflow_1

    if shell:
        _adapt_shell(shell)
    directory = os.path.join(os.path.realpath(os.getcwd()), '')
    modules.install(directory, package_modules, 'package_modules=True')
    tensorflow_1.install()
    queue_errors.install(directory)
    atexit.register(sessions.close)


def _adapt_shell(shell):
    from tf1_runner import program_flags

    sys.argv = ['notebook']
    program_flags.adapt_to_notebook(is_kernel=True)
    # Notebooks for Colab begin with %tensorflow_version 1.x.
    shell.register_magic_function(lambda line: None, 'line', 'tensorflow_version')
    # %tensorboard looks for this variable, then on the PATH, which may lack a virtual environment.
    tensorboard = os.path.join(os.path.dirname(sys.executable), 'tensorboard')
    if os.path.exists(tensorboard):
        os.environ.setdefault('TENSORBOARD_BINARY', tensorboard)


def _show_error(shell, error_type, error, trace, tb_offset=None):
    """Show the lines of the notebook, the message and the remedy; %tb shows the full traceback."""
    from IPython.core.error import UsageError

    try:
        if isinstance(error, SyntaxError):
            _add_remedy(error)
        is_group = 'ExceptionGroup' in str(error_type)
        if isinstance(error, (SyntaxError, UsageError)) or is_group or shell.call_pdb:
            shell.showtraceback((error_type, error, trace))
        else:
            _show_own_lines(shell, error_type, error, trace)
    except Exception as failure:  # such as of __str__; IPython would remove this function
        shell.showtraceback((error_type, failure, trace))


def _add_remedy(error):
    from tf1_runner import error_hints

    remedy = error.msg and error_hints.find_syntax_remedy(error)
    if remedy:
        error.msg += f'; {remedy}'


def _show_own_lines(shell, error_type, error, trace):
    from tf1_runner import error_hints, queue_errors

    last = error_type, error, trace
    cause = queue_errors.find_cause(error)
    operation = getattr(error, 'op', None)
    if cause:
        error_type, error, operation = type(cause.error), cause.error, cause.operation
    directory = os.path.realpath(os.getcwd())
    cell = shell.history_manager.input_hist_raw[-1]
    if cell.startswith('%%time'):  # IPython does not keep the lines of the timed code.
        body = cell.partition('\n')[2]
        for name in ('<timed exec>', '<timed eval>'):
            linecache.cache[name] = (len(body), None, body.splitlines(True), name)
    entries = error_hints.program_entries(trace, directory)
    shown_trace = None
    for entry in reversed(entries):
        shown_trace = types.TracebackType(
            shown_trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno
        )
    message = _message(error, operation, lambda path: error_hints.is_beside(path, directory))
    remedies = [cause and queue_errors.find_remedy(error)]
    remedies += [remedy for pattern, remedy in _REMEDIES if re.search(pattern, message)]
    remedies.append(error_hints.find_remedy(error, entries, directory))
    lines = [message, *getattr(error, '__notes__', [])]
    if error.__cause__:
        lines.append(f'Caused by {type(error.__cause__).__name__}: {error.__cause__}')
    lines += [f'Remedy: {remedy}' for remedy in list(filter(None, remedies))[:1]]
    shell.showtraceback((error_type, Exception('\n'.join(lines)), shown_trace), tb_offset=0)
    sys.last_type, sys.last_value, sys.last_traceback = last


def _message(error, operation, is_beside):
    """Return the message of an error without TensorFlow's stack, with the line of the operation."""
    if not hasattr(error, 'op'):  # not a tf.errors.OpError
        return re.sub('Originally defined at:.*', '', str(error), flags=re.DOTALL).strip()
    places = []
    for path, number, *_ in operation.traceback if operation else []:
        line = linecache.getline(path, number).strip()
        # The file of a cell does not exist. Timed code of an earlier cell has no lines.
        if os.path.exists(path) and is_beside(path):
            places.append(f'{os.path.basename(path)}:{number}: {line}')
        elif (
            line
            and not os.path.exists(path)
            and not re.search('<timed|run_cell_magic', path + line)
        ):
            places.append(line)
    message = errors.reason(error)
    return f'{message}\nOperation {operation.name!r}: {places[-1]}' if places else message
