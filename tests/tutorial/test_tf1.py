"""Warnings about unknown flags."""

import sys

from absl import flags

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
