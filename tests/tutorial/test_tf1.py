"""Warnings about unknown flags and missing GPUs."""

import collections
import sys

from absl import flags
import pytest
import tensorflow.compat.v1 as tf

from cifar10.tutorial import tf1


def test_a_warning_of_each_flag_whose_name_is_not_in_the_program(tmp_path, monkeypatch, capsys):
    program = tmp_path / 'program.py'
    program.write_text('getopt.getopt(sys.argv[1:], "e:", ["epochs="])\nprint("max-epochs")\n')
    monkeypatch.setattr(sys.modules['__main__'], '__file__', str(program), raising=False)
    monkeypatch.setattr(flags.FlagValues, '__call__', flags.FlagValues.__call__)
    monkeypatch.setattr(flags, 'FLAGS', flags.FlagValues())
    flags.DEFINE_integer('max_steps', 3, '', flag_values=flags.FLAGS)
    tf1._warn_of_unknown_flags()
    argv = (
        'x --max-step=4 --max-step=3 -e 3 --epochs=2 --max_steps=3 --epoch -0.5 --epochs_'.split()
    )
    for parsed in (flags.FLAGS, flags.FlagValues()):
        parsed(argv, known_only=True)
        parsed(argv, known_only=True)
    assert [line.split(' ', 1)[1] for line in capsys.readouterr().err.splitlines()] == [
        'tf.app.run ignores --epoch: the program defines no such flag',
        'tf.app.run ignores --epochs_: the program defines no such flag',
        'tf.app.run ignores --max-step: the program defines no such flag; did you mean --max_steps?',
    ]


@pytest.mark.parametrize('device_type, lines', [('CPU', 1), ('GPU', 0)])
def test_one_line_about_operations_on_a_missing_gpu(monkeypatch, capsys, device_type, lines):
    """Another task may have the GPU. Importing a graph adds operations too."""
    devices = [collections.namedtuple('Device', 'device_type')(device_type)]
    monkeypatch.setattr(tf.Session, 'list_devices', lambda session: devices)
    monkeypatch.setattr(tf.Session, 'run', tf1._with_notice_of_gpus(tf.Session.run))
    with tf.Graph().as_default() as exported, tf.device('/gpu:3'):
        tf.constant(3, name='three')
    config = tf.ConfigProto(allow_soft_placement=True)
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        with tf.device('/cpu:0'):
            session.run(tf.constant(1))
        assert capsys.readouterr().err == ''
        tf.import_graph_def(exported.as_graph_def(), name='')
        with tf.device('/gpu:4'):
            four = tf.constant(4)
        assert [session.run('three:0'), session.run(four)] == [3, 4]
    with tf.Graph().as_default(), tf.Session(config=config) as session, tf.device('/gpu:0'):
        session.run(tf.constant(1))
    told = capsys.readouterr().err
    assert told.count('No GPU found: the operations on /device:GPU:3 run on the CPU (') == lines
    assert told.count('\n') == lines
