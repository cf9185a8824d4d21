"""Errors of TensorFlow in one line."""

import errno

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import errors


def test_a_warning_is_one_line_whatever_names_are_in_it(capsys):
    errors.warn('a\x1b[31m\nb\udcff.jpg is left out, \u732b and gr\u00fcn are not')
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(r': a\x1b[31m\nb\udcff.jpg is left out, ' + '\u732b and gr\u00fcn are not')


def test_an_error_of_an_operation():
    missing = tf.io.read_file('/no/such/file', name='reading')
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError) as error:
        session.run(missing)
    assert 'reading' in error.value.message and '\n' in error.value.message
    assert errors.one_line_message(error.value) == '/no/such/file; No such file or directory'
    assert errors.reason(error.value) == 'No such file or directory'


def _exhausted(message):
    return tf.errors.ResourceExhaustedError(None, None, message)


@pytest.mark.parametrize(
    'error, reason',
    [
        (_exhausted('\n  Graph execution error:\n\nDetected at node x\n  full \nmore'), 'full'),
        (
            _exhausted(
                'Graph execution error:\n\nDetected at node x defined at (most recent call last):\n'
                '  File "a.py", line 3, in f\n    y = g(x)\nNode: x\nfull'
            ),
            'full',
        ),
        (_exhausted('Graph execution error:\n'), 'ResourceExhaustedError'),
        (
            _exhausted('/a; b/model.ckpt-3.data.tempstate17; No space left on device'),
            'No space left on device',
        ),
        (OSError(errno.EACCES, 'Permission denied', '/a/b'), 'Permission denied'),
        (ValueError('one; two'), 'one; two'),
    ],
)
def test_the_line_that_says_something_without_the_path(error, reason):
    assert errors.reason(error) == reason
