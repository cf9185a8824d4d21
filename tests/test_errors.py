"""Errors and warnings in one line."""

import pytest
import tensorflow.compat.v1 as tf

from cifar10 import errors


def test_a_warning_is_one_line_whatever_names_are_in_it(capsys):
    errors.warn('a\x1b[31m\nb\udcff.jpg is left out, \u732b and gr\u00fcn are not')
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(r': a\x1b[31m\nb\udcff.jpg is left out, ' + '\u732b and gr\u00fcn are not')


@pytest.mark.parametrize(
    'build, reason',
    [
        (lambda: tf.io.read_file('/no/such/file'), '/no/such/file; No such file or directory'),
        (lambda: tf.debugging.Assert(tf.constant(False), ['x: y']), 'assertion failed: [x: y]'),
    ],
)
def test_the_cause_of_a_failed_operation(build, reason):
    with tf.Session() as session, pytest.raises(tf.errors.OpError) as error:
        session.run(build())
    assert errors.reason(error.value) == reason
