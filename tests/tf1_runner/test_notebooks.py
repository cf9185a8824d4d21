"""Notebooks after `%load_ext tf1_runner`; docs/tour.ipynb is another one."""

import re

import pytest

from tests.helpers import notebooks


def _error(name, message, *lines):
    """Return the pattern of an error: the arrows point to `lines`, each in a cell."""
    arrows = ''.join(rf'(.*\n)*?-+> \d+ {re.escape(line)}\n' for line in lines)
    return rf'-+\n{name} +Traceback \(most recent call last\)\n{arrows}(.*\n)*?{name}: {message}'


# Cells, and the pattern of the whole output of each: text, error, or [type of the data].
NOTEBOOKS = {
    'the modules of this package': [
        (
            'import sys, types\n'
            "sys.modules['tensorflow'] = types.ModuleType('tensorflow')\n"
            '%load_ext tf1_runner',
            'UserError: TensorFlow has already been imported: restart the kernel, and run .*',
        ),
        (
            "del sys.modules['tensorflow']\n"
            "sys.path.insert(0, '')\n"
            "with open('cifar10.py', 'w') as copy:\n    copy.write('NUM_CLASSES = 7')\n"
            'import tf1_runner\ntf1_runner.activate(package_modules=True)',
            "notebook: using this package's modules, not .*/cifar10.py\n",
        ),
        # Flags and argparse.
        (
            'import tensorflow as tf\n'
            'FLAGS = tf.app.flags.FLAGS\n'
            "tf.app.flags.DEFINE_integer('max_steps', 10, 'Steps.', short_name='m')\n"
            'print(FLAGS.max_steps)',
            '10\n',
        ),
        ('FLAGS.max_steps = 5', ''),
        (
            "tf.app.flags.DEFINE_integer('max_steps', 20, 'Steps.', short_name='m')",
            r'\[text/plain\] .*FlagHolder.*',
        ),
        ('print(FLAGS.max_steps, FLAGS.m)', '20 20\n'),
        (
            'FLAGS.max_step = 3',
            r'notebook: FLAGS\.max_step is a new flag; did you mean FLAGS\.max_steps\?\n',
        ),
        (
            'import cifar10\n'
            'FLAGS.batch_size = 64\n'
            'def main(argv):\n'
            '    print(argv, FLAGS.batch_size, cifar10.FLAGS.batch_size, cifar10.FLAGS.use_fp16)\n'
            'tf.app.run()\n'
            'tf.app.run(main)',
            r"(\['notebook'\] 64 64 False\n){2}",
        ),
        (
            'import sys\ntf.app.run(lambda _: sys.exit(3))',
            _error(
                'UserError',
                'The program ended with exit status 3',
                'tf.app.run(lambda _: sys.exit(3))',
            ),
        ),
        ('import argparse\nprint(argparse.ArgumentParser().parse_args())', r'Namespace\(\)\n'),
        # InteractiveSession.
        ('sess = tf.InteractiveSession()', ''),
        (
            "one = tf.constant(1)\none.eval()\nwith tf.device('/gpu:1'):\n    two = one + 1\ntwo.eval()",
            r'notebook: No GPU found: /gpu:1 means /cpu:0 .*\n\[text/plain\] .*2.*',
        ),
        ("with tf.device('/gpu:0'):\n    print((two + 1).eval())", r'3\n'),
        # Cells that run twice.
        ('sess.close()\ntf.reset_default_graph()', ''),
        (
            'import tf1_runner\n'
            'tf1_runner.activate()\n'
            '%reload_ext tf1_runner\n'
            'import cifar10.tutorial\n'
            'print(cifar10.tutorial.__name__, cifar10.config.NUM_CLASSES, cifar10.NUM_CLASSES)',
            'cifar10.tutorial 10 10\n',
        ),
        ("w = tf.get_variable('w', [3])", ''),
        (
            "w = tf.get_variable('w', [3])",
            _error(
                'ValueError',
                'Variable w already exists, disallowed[^\n]*\n'
                'Remedy: run tf.reset_default_graph.. first, then all cells that build the graph, in order',
                "w = tf.get_variable('w', [3])",
            ),
        ),
        # Cells out of order.
        ('tf.reset_default_graph()\nw = tf.Variable(1.0)\nsess = tf.Session()', ''),
        (
            'sess.run(w)',
            _error(
                'FailedPreconditionError',
                r'[^\n]*\n(Operation[^\n]*\n)?Remedy: run tf.global_variables_initializer.. in this session first',
                'sess.run(w)',
            ),
        ),
        (
            'sess.run(tf.global_variables_initializer())\nprint(sess.run(w))\nsess.close()',
            r'1\.0\n',
        ),
        (
            'sess.run(w)',
            _error(
                'RuntimeError',
                r'Attempted to use a closed Session\.\nRemedy: run the cells .* again, in order',
                'sess.run(w)',
            ),
        ),
        ('old = tf.zeros([3])\ntf.reset_default_graph()', ''),
        (
            'old + tf.zeros([3])',
            _error(
                'ValueError',
                r'.*must be from the same graph.*\nRemedy: run the cells .* again.*',
                'old + tf.zeros([3])',
            ),
        ),
        ('print(logits)', _error('NameError', "name 'logits' is not defined", 'print(logits)')),
        # The tutorial, with queues that run to the end.
        (
            'import os\n'
            'tf.reset_default_graph()\n'
            "cifar10.FLAGS.data_dir = os.environ['DATA_DIR']\n"
            'cifar10.FLAGS.batch_size = 8\n'
            'cifar10.NUM_EXAMPLES_PER_EPOCH_FOR_TRAIN = 300\n'
            'global_step = tf.train.get_or_create_global_step()\n'
            'images, labels = cifar10.distorted_inputs()\n'
            'loss = cifar10.loss(cifar10.inference(images), labels)\n'
            'train_op = cifar10.train(loss, global_step)',
            r'Filling queue with 120 CIFAR images .*\n',
        ),
        (
            'sess = tf.Session()\n'
            'sess.run(tf.global_variables_initializer())\n'
            'threads = tf.train.start_queue_runners(sess)\n'
            'for _ in range(2):\n'
            '    _, value = sess.run([train_op, loss])\n'
            '    print(value)\n'
            'print(sess.run(global_step), len(threads) > 1)',
            r'4\.[67]\d*\n\d+\.\d+\n2 True\n',
        ),
    ],
    'queues that nothing fills': [
        (
            '%load_ext tf1_runner\n'
            'import tensorflow as tf\n'
            "names = tf.train.string_input_producer(['nix.bin'])\n"
            '_, record = tf.FixedLengthRecordReader(4).read(names)\n'
            'batch = tf.train.batch([record], 2)\n'
            'sess = tf.Session()\n'
            'threads = tf.train.start_queue_runners(sess)',
            '',
        ),
        (
            'sess.run(batch)',
            _error(
                'NotFoundError',
                r'nix\.bin; No such file or directory\n'
                r"Operation 'ReaderReadV2': _, record = tf\.Fixed.*\n"
                'Remedy: a relative path starts in the working directory',
                'sess.run(batch)',
            ),
        ),
        (
            "with open('two.bin', 'wb') as file:\n    file.write(b'12345678')\n"
            'tf.reset_default_graph()\n'
            "names = tf.train.string_input_producer(['two.bin'], num_epochs=1)\n"
            '_, record = tf.FixedLengthRecordReader(4).read(names)\n'
            'batch = tf.train.batch([record], 2)\n'
            'def start():\n'
            '    coord = tf.train.Coordinator()\n'
            '    return coord, tf.train.start_queue_runners(sess, coord)\n'
            'sess = tf.Session()\n'
            'coord, threads = start()\n'
            'coord.join(threads)',
            _error(
                'FailedPreconditionError',
                'Attempting to use uninitialized value input_producer/limit_epochs/epochs\n'
                r"Operation '[\w/]+': names = tf.train.string_input_producer\(.*\n"
                r'Remedy: run tf.global_variables_initializer\(\) and tf.local_variables_init.*',
                'coord.join(threads)',
            ),
        ),
        (
            'sess = tf.Session()\n'
            'sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])\n'
            'coord, threads = start()\n'
            'for _ in range(2):\n'
            '    print(sess.run(batch))',
            r"\[b'1234' b'5678'\]\n"
            + _error(
                'OutOfRangeError',
                r"FIFOQueue '\S+' is closed and has insufficient elements .*\n"
                "Operation 'batch': batch = .*",
                '    print(sess.run(batch))',
            ),
        ),
    ],
    'copies': [
        (
            "import sys, types\nsys.path.insert(0, '')\n"
            "sys.modules['cifar10'] = types.ModuleType('cifar10')\n"  # an import before %load_ext
            "with open('cifar10.py', 'w') as copy:\n    copy.write('1 / 0')\n"
            '%load_ext tf1_runner',
            r"notebook: using .*/cifar10\.py \(package_modules=True uses this package's, .*\)\n",
        ),
        ('import cifar10', _error('ZeroDivisionError', 'division by zero', 'import cifar10')),
        ('%tensorflow_version 1.x', ''),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize('name', NOTEBOOKS)
def test_cells(name, tmp_path, data_dir):
    cells, patterns = zip(*NOTEBOOKS[name])
    notebook = notebooks.nbformat.v4.new_notebook(
        cells=[notebooks.nbformat.v4.new_code_cell(cell) for cell in cells]
    )
    outputs = notebooks.execute(notebook, tmp_path, DATA_DIR=data_dir)
    for cell, pattern, output in zip(cells, patterns, outputs):
        assert re.fullmatch(pattern, output), (
            f'{cell}\nshould print {pattern}\nbut printed {output}'
        )
