"""Tables of GPUs in one machine, against formulas written by hand."""

import pytest

from cifar10.measure import division
from cifar10.parallelism import layers

P = 4 * 1068298
FC = 4 * (2304 * 384 + 384 + 384 * 192 + 192 + 192 * 10 + 10)  # of the fully connected layers


@pytest.mark.parametrize(
    'arguments, link_bytes, update, examples',
    [
        ((2, 1, 'cpu'), 2 * P + 64 * (24 * 24 * 3 + 1) * 4, 0.22e-3 + 2 * 0.23e-3, 128),
        # for three others weights and gradients
        ((4, 1, 'first_device'), 6 * P + 64 * (24 * 24 * 3 + 1) * 4, 8 * P / 500e9, 256),
        # local3/weights on one
        (
            (2, 1, 'spread'),
            2 * P + 64 * (24 * 24 * 3 + 1) * 4,
            6 * 4 * (4800 + 64 + 884736) / 500e9,
            128,
        ),
        # and the images
        (
            (2, 2, 'first_device'),
            2 * (FC + 64 * 2304 * 4) + 64 * 24 * 24 * 3 * 4,
            5 * P / 500e9,
            64,
        ),
    ],
)
def test_estimates(arguments, link_bytes, update, examples):
    paper = division.estimate(*arguments, batch_size=64, seconds_per_image=1e-5)
    assert paper == division.Estimate(
        link_bytes, pytest.approx(64e-5), pytest.approx(update), examples
    )
    assert paper.images_per_sec(25) == pytest.approx(
        examples / (64e-5 + link_bytes / 25e9 + update)
    )


def _cells(line):
    return [cell.strip() for cell in line.strip('|').split('|')]


@pytest.mark.slow
def test_plan(monkeypatch):
    monkeypatch.setattr(division, 'GPUS', (2,))
    monkeypatch.setattr(division, 'BATCHES', (16,))
    _, _, rates, _, ratios = division.plan(64, 5000).split('\n\n')
    seconds = layers.total(layers.step_products(1)) / 5e12
    rows = [_cells(line) for line in rates.split('\n')[2:]]
    assert [row[:3] for row in rows] == [
        ['2', towers, strategy]
        for towers in ('2 x 1', '1 x 2')
        for strategy in ('cpu', 'first_device', 'spread')
    ]
    paper = division.estimate(2, 2, 'spread', 64, seconds)
    assert rows[-1][3:] == ['%.1f' % (paper.link_bytes / 1e6)] + [
        '%.0f' % paper.images_per_sec(link) for link in (8, 25, 300)
    ]
    best = [
        max(
            division.estimate(2, per_tower, strategy, 16, seconds).images_per_sec(25)
            for strategy in ('cpu', 'first_device', 'spread')
        )
        for per_tower in (2, 1)
    ]
    assert _cells(ratios.split('\n')[2])[::2] == ['16', '%.2f' % (best[0] / best[1])]
