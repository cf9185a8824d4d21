"""Errors of the threads that fill the queues of a program."""

import re

import pytest

from tests.helpers import programs

pytestmark = pytest.mark.slow

HEAD = """
import os, threading
os.chdir(os.path.dirname(__file__))
import tensorflow as tf
with open('records.bin', 'wb') as file:
    file.write(b'12345678' * 5)
with tf.python_io.TFRecordWriter('examples.tfrecords') as writer:
    numbers = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    features = tf.train.Features(feature={'label': numbers})
    writer.write(tf.train.Example(features=features).SerializeToString())
def read(reader, path, num_epochs=None):
    return reader.read(tf.train.string_input_producer([path], num_epochs))[1]
"""
INPUT = "value = tf.decode_raw(read(tf.FixedLengthRecordReader(4), 'records.bin'), tf.uint8)\n"
PARSE = "value = tf.parse_single_example(read(tf.TFRecordReader(), '{}'), features)['{}']\n"
MISTAKES = {  # the last line of the program that counts, and the line that is printed
    'a missing file': (
        INPUT.replace('records.bin', 'nix.bin') + 'value.set_shape([4])\n',
        'return reader.read(',
        'NotFoundError: nix.bin; No such file or directory; a relative path starts in the working ',
    ),
    'a damaged file': (
        "features = {'label': tf.FixedLenFeature([1], tf.int64)}\n"
        + PARSE.format('records.bin', 'label'),
        'return reader.read(',
        'DataLossError: corrupted record at 0',
    ),
    'a wrong name': (
        "features = {'labels': tf.FixedLenFeature([1], tf.int64)}\n"
        + PARSE.format('examples.tfrecords', 'labels'),
        'value = tf.parse_single_example(',
        r'InvalidArgumentError: .*Feature: labels \(data type: int64\) is required but could not be '
        'found$',
    ),
    'a wrong shape': (
        INPUT + 'value = tf.reshape(value, [2, 3])\n',
        'value = tf.reshape(',
        'InvalidArgumentError: Input to reshape is a tensor with 4 values, but the requested shape '
        'has 6$',
    ),
    'a counter of epochs without a value': (
        INPUT.replace("'records.bin'", "'records.bin', 2") + 'value.set_shape([4])\n',
        'return reader.read(',
        r'FailedPreconditionError: Attempting to use uninitialized value \S+/epochs; run '
        r'tf\.global_variables_initializer\(\) and tf\.local_variables_initializer\(\) first',
    ),
}
BATCH = """
batch = tf.train.shuffle_batch([value], 2, 20, 2, num_threads=3)
sess = tf.Session()
sess.run(tf.global_variables_initializer())
"""
STARTS = 'coord = tf.train.Coordinator()\nthreads = tf.train.start_queue_runners(sess, coord)\n'
STARTS_WITHOUT = STARTS.replace('sess, coord', 'sess')
JOINS = 'coord.request_stop()\ncoord.join(threads)\n'
REPEATS = 'while True:\n    sess.run(batch)\n'
CATCHES_THE_END = """
try:
    while not coord.should_stop():
        sess.run(batch)
except tf.errors.OutOfRangeError:
    pass
print('Done training')
"""
RUNS_MONITORED = """
with tf.train.MonitoredTrainingSession() as sess:
    while not sess.should_stop():
        sess.run(batch)
"""
# A thread of the program fills this queue.
OWN_THREAD = """
queue = tf.FIFOQueue(10, tf.float32, [3])
x = tf.placeholder(tf.float32)
enqueue = queue.enqueue(x)
batch, close = queue.dequeue(), queue.close()
sess, coord = tf.Session(), tf.train.Coordinator()
def feed():
    try:
        sess.run(enqueue, {x: [1, 2, 3]})
        FAIL
    except Exception as error:
        coord.request_stop(error)
thread = threading.Thread(target=feed)
thread.start()
thread.join()
"""


@pytest.fixture
def run(tmp_path):
    """run(text, wrapper): exit status, stdout and stderr of a program, without its directory.

    A fork does not call the functions of atexit.
    """
    path = tmp_path / 'program.py'

    def write_and_run(text, wrapper=()):
        path.write_text(HEAD + text)
        status, stdout, stderr = programs.run('cifar10_run', str(path), wrapper=wrapper)
        return status, stdout, stderr.replace(str(path), 'program.py')

    return write_and_run


def _number(text, line):
    """Return the number of the last line of a program that begins with `line`."""
    lines = (HEAD + text).splitlines()
    return max(n for n, found in enumerate(lines, 1) if found.strip().startswith(line))


@pytest.mark.parametrize(
    'name, end',
    [(name, STARTS + REPEATS) for name in MISTAKES]
    + [('a missing file', STARTS_WITHOUT + REPEATS), ('a wrong name', STARTS_WITHOUT + REPEATS)]
    + [('a missing file', STARTS + CATCHES_THE_END + JOINS)],
)
def test_the_cause_is_the_message(run, name, end):
    text, place, message = MISTAKES[name]
    status, stdout, stderr = run(text + BATCH + end)
    number = _number(text, place)
    assert re.match(f'cifar10_run.py: error: program.py:{number}: {message}', stderr), stderr
    assert (status, stderr.count('\n')) == (1, 1)
    assert stdout == ('Done training\n' if end.endswith(JOINS) else '')


@pytest.mark.parametrize('starts', [STARTS, STARTS_WITHOUT], ids=['with', 'without'])
def test_a_program_that_catches_the_end_of_its_data(run, starts):
    """An error is shown, the end of the epochs is none."""
    text, place, message = MISTAKES['a missing file']
    found = run(text + BATCH + starts + CATCHES_THE_END, programs.AS_A_USER)
    line = (
        f'program.py: A thread that fills a queue has failed: program.py:{_number(text, place)}: '
    )
    assert found[:2] == (0, 'Done training\n')
    assert re.match(line + message, found[2]) and found[2].count('\n') == 1, found[2]
    text, _, _ = MISTAKES['a counter of epochs without a value']
    text += BATCH + 'sess.run(tf.local_variables_initializer())\n' + starts + CATCHES_THE_END
    found = run(text + JOINS.replace('threads', '[]'), programs.AS_A_USER)
    assert found == (0, 'Done training\n', '')
    status, _, stderr = run(text.replace('OutOfRangeError', 'DataLossError'))
    assert status == 1 and stderr.startswith('Traceback ')
    assert 'closed and has insufficient elements' in stderr.splitlines()[-1]
    assert stderr.endswith('than in a batch: catch tf.errors.OutOfRangeError\n')


def test_a_monitored_session(run):
    text, place, message = MISTAKES['a missing file']
    status, _, stderr = run(text + BATCH.replace('sess', '# ') + RUNS_MONITORED)
    line = f'cifar10_run.py: error: program.py:{_number(text, place)}: {message}'
    assert status == 1 and re.match(line, stderr) and stderr.count('\n') == 1, stderr
    text, _, _ = MISTAKES['a counter of epochs without a value']
    assert run(text + BATCH.replace('sess', '# ') + RUNS_MONITORED) == (0, '', '')


@pytest.mark.parametrize(
    'fails, place, message',
    [
        ("{}['nix']", 'FAIL', "KeyError: 'nix'"),
        ('sess.run(enqueue, {x: [1]})', 'enqueue = ', 'InvalidArgumentError: Shape mismatch in '),
        ('{}.iteritems()', 'FAIL', 'AttributeError: .*; this is Python 2: convert the program '),
    ],
)
def test_a_thread_of_the_program(run, fails, place, message):
    text = OWN_THREAD.replace('FAIL', fails)
    line = f'program.py:{_number(OWN_THREAD, place)}: {message}'
    status, _, stderr = run(text + 'sess.run(close)\n' + REPEATS)
    assert status == 1 and stderr.count('\n') == 1
    assert re.match('cifar10_run.py: error: ' + line, stderr), stderr
    status, _, stderr = run(
        'from tf1_runner import queue_errors\nqueue_errors.WARN_AFTER_SECS = 0\n'
        + text
        + 'for thread in threading.enumerate():\n'
        '    if isinstance(thread, threading.Timer):\n'
        '        thread.join()\n'
        'os._exit(3)\n'  # as if it were killed: it waits for the queue
    )
    assert status == 3 and 'program.py: A thread that fills a queue has failed: ' in stderr


def test_a_path_with_a_tilde(run):
    text, _, _ = MISTAKES['a missing file']
    status, _, stderr = run(text.replace('nix.bin', '~/nix.bin') + BATCH + STARTS + REPEATS)
    assert status == 1
    assert '~/nix.bin; No such file or directory; TensorFlow does not expand ~: write os' in stderr
