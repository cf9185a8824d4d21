"""The operations of a step as text, and the rate of a matrix product."""

from cifar10.measure import flops
from cifar10.parallelism import layers


def test_operations_are_listed_and_summed():
    products = [
        layers.Products('conv1', 2, 1500000000, True),
        layers.Products('softmax_linear', 3, 250000, False),
    ]
    assert layers.total(products) == 1500250000
    assert flops.describe(products) == (
        '  conv1          2 products    1.5000 GFLOP\n'
        '  softmax_linear 3 products    0.0003 GFLOP\n'
        '  sum                          1.5003 GFLOP'
    )


def test_matrix_product_has_a_rate():
    assert 1e7 < flops.matrix_product_rate('/cpu:0', size=64, num_runs=3) < 1e14
