"""The floating-point operations of a step, against a list of the layers written by hand."""

from cifar10.parallelism import layers

# name, places per example, inputs of each, outputs of each, products: no gradient reaches the
# images
LAYERS = [
    ('conv1', 24 * 24, 5 * 5 * 3, 64, 2),
    ('conv2', 12 * 12, 5 * 5 * 64, 64, 3),
    ('local3', 1, 6 * 6 * 64, 384, 3),
    ('local4', 1, 384, 192, 3),
    ('softmax_linear', 1, 192, 10, 3),
]


def test_operations_of_each_layer():
    """Each product, for outputs, weights or inputs, takes a multiplication and an addition per
    weight and place."""
    for batch in (1, 6):
        assert layers.step_products(batch) == [
            (layer, count, count * 2 * batch * places * inputs * outputs, layer.startswith('conv'))
            for layer, places, inputs, outputs, count in LAYERS
        ]


def test_other_numbers_of_classes_change_the_last_layer():
    assert layers.step_products(2, 300)[:-1] == layers.step_products(2)[:-1]
    assert layers.step_products(2, 300)[-1] == ('softmax_linear', 3, 3 * 2 * 2 * 192 * 300, False)
