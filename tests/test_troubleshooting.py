"""docs/troubleshooting.md: each text of this package is one that it prints."""

import ast
import glob
import os
import re

from tests.helpers import pages
from tests.helpers.forks import ROOT

# Messages of pip, Python, the shell, the kernel, TensorBoard, the browser, TensorFlow, and the
# programs of books; other words of the page.
OF_OTHERS = {
    'No matching distribution found for tensorflow==1.15',
    'Could not find a version that satisfies the requirement tensorflow',
    "No module named 'tensorflow'",
    'tensorboard: command not found',
    'externally-managed-environment',
    "No module named 'cifar10'",
    'Could not find cuda drivers',
    'oneDNN custom operations are on',
    'This TensorFlow binary is optimized',
    'failed call to cuInit',
    'oneDNN supports DT_UINT8 only on platforms with AVX-512',
    'tf.placeholder() is not compatible with eager execution',
    'Model diverged with loss = NaN',
    'Killed',
    'No dashboards are active for the current data set',
    'localhost refused to connect',
    'session.run',
    "can't open file '.../scripts/...'",
    'ensurepip is not available',
    'No space left on device',
    'pip',
    "Permission denied: '/tmp/cifar10_train'",
    'Dimensions must be equal',
    'Shape must be rank',
    "Missing parentheses in call to 'print'",
    'Attempting to use uninitialized value',
    'is closed and has insufficient elements',
    'already exists, disallowed',
    'Graph is finalized and cannot be modified',
    'Key ... not found in checkpoint',
    'Queues are not supported when eager execution is enabled',
    'OOM when allocating tensor',
    'CUDA_ERROR_OUT_OF_MEMORY',
    'CUDA out of memory',
    "module 'tensorflow' has no attribute 'app'",
    "module 'tensorflow' has no attribute 'Session'",
    "module 'tensorflow' has no attribute 'placeholder'",
    "module 'tensorflow' has no attribute 'contrib'",
    "No module named 'cifar10_input'",
    "No module named 'tensorflow.models'",
    "No module named 'tensorflow.examples'",
    "No module named 'tensorflow.contrib'",
    'To enable the following instructions',
    'is deprecated and will be removed',
    'Instructions for updating',
    'non-resource variables are not supported',
    'Local rendezvous is aborting with status',
    'Enqueue operation was cancelled',
    'Skipping cancelled enqueue attempt',
}


def _texts():
    """Return the texts in the first column of the tables."""
    cells = re.findall(r'^\| (.*?) \|', pages.read('troubleshooting.md'), re.MULTILINE)
    return {text for cell in cells for text in re.findall('`([^`]+)`', cell)}


def _messages():
    """Return the strings of the package as lists of literal parts, and None for inserted values."""
    found = []
    for path in glob.glob(os.path.join(ROOT, 'cifar10', '**', '*.py'), recursive=True) + glob.glob(
        os.path.join(ROOT, 'tf1_runner', '*.py')
    ):
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


def test_our_texts():
    """A message of the package begins with each text; most of the text is literal."""
    messages = _messages()
    for text in sorted(_texts() - OF_OTHERS):
        literal = max(_literal_length(parts, text.rstrip('. ')) for parts in messages)
        assert literal > len(text) / 2, text


def test_each_exception_is_on_the_page():
    assert OF_OTHERS <= _texts()
