"""How functions of the tutorial are told from changed ones."""
from cifar10.tutorial import modules

FUNCTION = '''import os
def inputs(data_dir):
  """Makes batches."""
  size = 24  # pixels
  if data_dir:
    return (data_dir, "data", list(xrange(2)),
            size)
'''
REFORMATTED = '''

def inputs(data_dir):
    size = 24

    if data_dir:
        # It may be None.
        return (data_dir, 'data', list(range(2)), size)
def others(): pass
'''


def test_the_layout_of_a_function_does_not_count():
    digests = modules.function_digests(REFORMATTED.encode())
    assert modules.function_digests(FUNCTION.encode()) == {'inputs': digests['inputs']} and set(digests) == {'inputs', 'others'}


def test_each_change_of_a_function_counts():
    changes = [('', ''), ('24', '32'), ('24', "'24'"), ('if', 'if not'), ('    return', '    pass\n  return')]
    texts = [FUNCTION.replace(before, after) for before, after in changes]
    assert len({modules.function_digests(text.encode())['inputs'] for text in texts}) == len(texts)
