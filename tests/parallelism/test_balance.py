"""Which place holds which variable."""

import numpy as np
import tensorflow.compat.v1 as tf

from cifar10.parallelism.balance import Balance


def test_each_variable_goes_to_the_emptiest_place():
    """The first one of several, as NumPy's argmin has it; the type counts."""
    rng, held = np.random.default_rng(0), np.zeros(3)
    balance = Balance(['a', 'b', 'c'])
    for i in range(40):
        shape, dtype = rng.integers(1, 5, 2), [np.float16, np.float32, np.int64][i % 3]
        expected = held.argmin()
        held[expected] += shape.prod() * dtype(0).nbytes
        assert (
            balance.place('variable %d' % i, shape.tolist(), tf.as_dtype(dtype)) == 'abc'[expected]
        )
    assert held.max() - held.min() <= 16 * 8


def test_a_variable_has_one_place():
    """A second tower asks again."""
    balance = Balance(['a', 'b'])
    assert [
        balance.place(name, [2], tf.float32)
        for name in ('first', 'first', 'second', 'first', 'third')
    ] == ['a', 'a', 'b', 'a', 'a']
    assert Balance(['a', 'a']).place('only', [], tf.float32) == 'a'  # two towers share a device
