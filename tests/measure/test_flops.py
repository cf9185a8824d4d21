"""The floating-point operations of a step, against a list of the layers written by hand."""
from cifar10.measure import flops

LAYERS = [  # name, places per example, inputs of each, outputs of each, products: no gradient reaches the images
    ('conv1', 24 * 24, 5 * 5 * 3, 64, 2), ('conv2', 12 * 12, 5 * 5 * 64, 64, 3), ('local3', 1, 6 * 6 * 64, 384, 3),
    ('local4', 1, 384, 192, 3), ('softmax_linear', 1, 192, 10, 3)]


def test_operations_of_each_layer():
    """Each product, for outputs, weights or inputs, takes a multiplication and an addition per weight and place."""
    for batch in (1, 6):
        assert flops.step_products(batch) == [
            (layer, count, count * 2 * batch * places * inputs * outputs) for layer, places, inputs, outputs, count in LAYERS]


def test_operations_are_listed_and_summed():
    products = [flops.Products('conv1', 2, 1500000000), flops.Products('softmax_linear', 3, 250000)]
    assert flops.total(products) == 1500250000
    assert flops.describe(products) == ('  conv1          2 products    1.5000 GFLOP\n'
                                        '  softmax_linear 3 products    0.0003 GFLOP\n'
                                        '  sum                          1.5003 GFLOP')


def test_matrix_product_has_a_rate():
    assert 1e7 < flops.matrix_product_rate('/cpu:0', size=64, num_runs=3) < 1e14
