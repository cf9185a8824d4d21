"""Flags of which a program is warned."""

import sys

import pytest

from cifar10.tutorial import tf1


@pytest.mark.parametrize(
    'line, expected',
    [
        ('epochs = 3  # how many epochs', False),
        ('print("step of epochs: %d" % epochs)', False),
        ('tf.app.flags.DEFINE_integer("epochs", 3, "")', True),
        ("parser.add_argument('--epochs', type=int)", True),
        ("i = sys.argv.index('-epochs')", True),
        ("if argument.startswith('--epochs='): pass", True),
        ('getopt.getopt(sys.argv[1:], "e:", ["epochs="])', True),
        ('getopt.gnu_getopt(sys.argv[1:], short_flags)', True),
        ('print(FLAGS.epochs)', True),
        ('print(args.epochs)', True),
        ('print(FLAGS.epochs_per_decay)', False),
    ],
)
def test_whether_a_program_reads_a_flag(tmp_path, monkeypatch, line, expected):
    (tmp_path / 'program.py').write_text('import sys\n' + line + '\n')
    monkeypatch.setattr(
        sys.modules['__main__'], '__file__', str(tmp_path / 'program.py'), raising=False
    )
    assert tf1._is_read_by_program('epochs') == expected
