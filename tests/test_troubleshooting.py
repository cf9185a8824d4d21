"""docs/troubleshooting.md: each text is one that a program prints."""

import ast
import functools
import glob
import importlib
import os
import re
import types

from absl import flags
import pytest
import tensorflow.compat.v1 as tf

from tests.helpers import pages
from tests.helpers.forks import ROOT

# Messages of pip, the shell, the kernel, TensorBoard, the browser, TensorFlow's C++ code, and the
# programs of books; other words of the page.
OF_OTHERS = {
    'No matching distribution found for tensorflow==1.15',
    'Could not find a version that satisfies the requirement tensorflow==1.15',
    'Could not find a version that satisfies the requirement tensorflow',
    "No module named 'tensorflow'",
    'tensorboard: command not found',
    'externally-managed-environment',
    "No module named 'cifar10'",
    'Illegal instruction',
    'Could not find cuda drivers',
    'oneDNN custom operations are on',
    'This TensorFlow binary is optimized',
    'failed call to cuInit',
    'oneDNN supports DT_UINT8 only on platforms with AVX-512',
    'tf.placeholder() is not compatible with eager execution',  # Tests use graph mode.
    'Model diverged with loss = NaN',
    'Killed',
    'No dashboards are active for the current data set',
    'localhost refused to connect',
    'Port 6006 is in use',
    'session.run',
    "can't open file '.../scripts/...'",
    'ensurepip is not available',
    'No space left on device',
    'pip',
    "'.' is not recognized",
    'venv\\bin\\activate',
    "Permission denied: '/tmp/cifar10_train'",
    'Dimensions must be equal',
    'Shape must be rank',
}


def _run_without_values():
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.Variable(1.0, use_resource=False))


def _define_twice():
    for _ in range(2):
        tf.app.flags.DEFINE_string('log_dir', '', '')


OF_PYTHON_AND_TENSORFLOW = {
    "Missing parentheses in call to 'print'": lambda: compile('print 1', '', 'exec'),
    'Attempting to use uninitialized value': _run_without_values,
    "DuplicateFlagError: The flag 'log_dir' is defined twice": _define_twice,
    "Unknown command line flag 'xyz'": lambda: flags.FlagValues()(['program', '--xyz']),
}

for _name in ('app', 'Session', 'placeholder', 'contrib'):
    OF_PYTHON_AND_TENSORFLOW[f"module 'tensorflow' has no attribute '{_name}'"] = functools.partial(
        getattr, types.ModuleType('tensorflow'), _name
    )
for _name in ('cifar10_input', 'tensorflow.models', 'tensorflow.examples', 'tensorflow.contrib'):
    OF_PYTHON_AND_TENSORFLOW[f"No module named '{_name}'"] = functools.partial(
        importlib.import_module, _name
    )


def _texts():
    """Return the texts in the first column of the tables."""
    cells = re.findall(r'^\| (.*?) \|', pages.read('troubleshooting.md'), re.MULTILINE)
    return {text for cell in cells for text in re.findall('`([^`]+)`', cell)}


def _messages():
    """Return the strings of the package as lists of literal parts, and None for inserted values."""
    found = []
    for path in glob.glob(os.path.join(ROOT, 'cifar10', '**', '*.py'), recursive=True):
        with open(path, encoding='utf-8') as opened:
            nodes = [
                node
                for node in ast.walk(ast.parse(opened.read()))
                if isinstance(node, ast.JoinedStr)
            ]
        for node in nodes:
            values = [getattr(part, 's', getattr(part, 'value', None)) for part in node.values]
            found.append([value if isinstance(value, str) else None for value in values])
    return found


def _literal_length(parts, text):
    """Return how many characters of a text are literal, if a message can begin with it, else -1."""
    if not text:
        return 0
    if not parts:
        return -1
    first, rest = parts[0], parts[1:]
    if first is None:
        return max(_literal_length(rest, text[i:]) for i in range(1, len(text) + 1))
    if not first.startswith(text[: len(first)]):
        return -1
    further = _literal_length(rest, text[len(first) :])
    return further if further < 0 else further + len(text[: len(first)])


@pytest.mark.parametrize('text', sorted(OF_PYTHON_AND_TENSORFLOW))
def test_texts_of_python_and_tensorflow(text):
    if (
        text.startswith('No')
        and text.endswith((".contrib'", ".examples'"))
        and tf.__version__.startswith('1.')
    ):
        pytest.skip('TensorFlow 1.15 has it')
    kind, _, words = text.rpartition(': ')
    with pytest.raises(Exception, match=re.escape(words)) as error:
        OF_PYTHON_AND_TENSORFLOW[text]()
    assert not kind or error.type.__name__ == kind


def test_our_texts():
    """A message of the package begins with each text; most of the text is literal."""
    messages = _messages()
    for text in sorted(_texts() - OF_OTHERS - {*OF_PYTHON_AND_TENSORFLOW}):
        literal = max(_literal_length(parts, text.rstrip('. ')) for parts in messages)
        assert literal > len(text) / 2, text


def test_each_exception_is_on_the_page():
    assert OF_OTHERS | {*OF_PYTHON_AND_TENSORFLOW} <= _texts()
