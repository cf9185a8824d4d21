"""The costs of the simulation, from measured times of updates; how well it predicts other ones."""

import math

from cifar10.measure import scaling


def ratios(scheme, machines, costs, measured):
    """The predicted time of an update over the measured one.

    Args:
      scheme: a Scheme; its mode is replaced.
      machines: the Machines of the measurement; the number of workers is replaced.
      costs: the Costs to predict with.
      measured: a dict from modes to dicts from numbers of workers to milliseconds per update.

    Returns:
      A dict like `measured`.
    """
    return {
        mode: {
            num_workers: 1e3
            / ms
            * scaling.speed(
                scheme._replace(mode=mode), machines._replace(num_workers=num_workers), costs
            ).seconds
            for num_workers, ms in times.items()
        }
        for mode, times in measured.items()
    }


def fit(scheme, machines, costs, measured, names):
    """The Costs whose ratios are nearest to 1: the least squares of their logarithms.

    One cost after the other is changed, by smaller and smaller factors.

    Args:
      scheme, machines, measured: see `ratios`.
      costs: the Costs to start from, greater than 0.
      names: of the costs that may change; there must not be more than measured times.
    """

    def error(tried):
        return sum(
            math.log(ratio) ** 2
            for row in ratios(scheme, machines, tried, measured).values()
            for ratio in row.values()
        )

    factor, least = 4.0, error(costs)
    while factor > 1.001:
        tried = [
            costs._replace(**{name: getattr(costs, name) * change})
            for name in names
            for change in (factor, 1 / factor)
        ]
        errors = [error(one) for one in tried]
        if min(errors) < least:
            costs, least = tried[errors.index(min(errors))], min(errors)
        else:
            factor = math.sqrt(factor)
    return costs
