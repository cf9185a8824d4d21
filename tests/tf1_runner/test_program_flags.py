"""Flags of a program: warnings of unknown ones, and what TensorFlow 1 allowed."""

import sys

from absl import flags
import pytest

from tests.helpers import programs
from tf1_runner import program_flags


def test_a_warning_of_each_flag_whose_name_is_not_in_the_program(tmp_path, monkeypatch, capsys):
    program = tmp_path / 'program.py'
    program.write_text('getopt.getopt(sys.argv[1:], "e:", ["epochs="])\nprint("max-epochs")\n')
    (tmp_path / 'its_module.py').write_text('parser.add_argument("--data_dir")\n')
    monkeypatch.setattr(sys.modules['__main__'], '__file__', str(program), raising=False)
    monkeypatch.setattr(flags.FlagValues, '__call__', flags.FlagValues.__call__)
    monkeypatch.setattr(flags, 'FLAGS', flags.FlagValues())
    flags.DEFINE_integer('max_steps', 3, '', flag_values=flags.FLAGS)
    program_flags._warn_of_unknown_flags()
    argv = 'x --max-step=4 --max-step=3 -e 3 --epochs=2 --max_steps=3 --epoch -0.5 --epochs_ --data_dir=3'.split()
    for parsed in (flags.FLAGS, flags.FlagValues()):
        parsed(argv, known_only=True)
        parsed(argv, known_only=True)
    assert [line.split(' ', 1)[1] for line in capsys.readouterr().err.splitlines()] == [
        'tf.app.run ignores --epoch: the program defines no such flag',
        'tf.app.run ignores --epochs_: the program defines no such flag',
        'tf.app.run ignores --max-step: the program defines no such flag; did you mean --max_steps?',
    ]


@pytest.mark.slow
def test_early_reads_and_flags_of_absl(tmp_path):
    """A read before tf.app.run parses only the flags that are defined by then."""
    (tmp_path / 'program.py').write_text(
        'import tensorflow as tf\n'
        'flags = tf.app.flags\n'
        "flags.DEFINE_integer('first', 1, '')\n"
        'early = flags.FLAGS.first\n'
        "flags.DEFINE_integer('second', 2, '')\n"
        "flags.DEFINE_string('log_dir', '/here', '')\n"
        'def main(argv):\n'
        '    print(argv[1:], early, flags.FLAGS.first, flags.FLAGS.second, flags.FLAGS.log_dir)\n'
        'tf.app.run()\n'
    )
    found = programs.run(
        'cifar10_run', str(tmp_path / 'program.py'), 'word', '--second=5', '--first=4'
    )
    assert found == (0, "['word'] 4 4 5 /here\n", '')
