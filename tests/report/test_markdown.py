"""Tables in Markdown."""

from cifar10.report import markdown


def test_table():
    assert (
        markdown.table(['', 'runs'], [['a', '1'], ['b', '']])
        == '|  | runs |\n| --- | --- |\n| a | 1 |\n| b |  |'
    )
