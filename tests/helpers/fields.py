"""Values of the fields of HParams and RunSettings, from their metadata."""

import dataclasses
import math
from typing import Optional

import numpy as np

from cifar10.config import HPARAMS

FLOATS = float, Optional[float]


def other_value(field, value):
    """Return a valid value of a field that is not `value`."""
    low, high, choices = (field.metadata[name] for name in ('low', 'high', 'choices'))
    if choices:
        values = choices
    elif low is None:
        values = [False, True]
    elif field.type in FLOATS:
        values = [low + share * (min(high, low + 1) - low) for share in (0.25, 0.5)]
    else:
        values = [low + 1, low + 2]
    return next(other for other in values if other != value)


def valid_values(field):
    """Return the extreme values of a field, or all of them."""
    if field.metadata['low'] is None:
        return field.metadata['choices'] or [False, True]
    bounds = [field.metadata['low'], field.metadata['high']]
    return [float(bound) for bound in bounds] if field.type in FLOATS else bounds


def is_valid(field, value):
    """Return True if a value has the type of a field, and is a choice or in the bounds."""
    low, high, choices = (field.metadata[name] for name in ('low', 'high', 'choices'))
    return type(value) is field.type and (value in choices if choices else low <= value <= high)


def invalid_values(field):
    """Return values that a field must not have: of numbers, the nearest ones."""
    low, high = field.metadata['low'], field.metadata['high']
    if low is None:
        return ['other', '']
    if field.type in FLOATS:
        below, above = np.nextafter(low, -math.inf), np.nextafter(high, math.inf)
        return ['nan', float(below)] + ([float(above)] if high < math.inf else [])
    return [low - 1, high + 1, low + 0.5]


def with_effect(hparams, name, value):
    """Return HParams with another value of one field, and whatever gives it an effect."""
    other, values = HPARAMS[name].metadata['only_with'] or (name, [value])
    if getattr(hparams, other) not in values:
        hparams = dataclasses.replace(hparams, **{other: values[0]})
    return dataclasses.replace(hparams, **{name: value})


def without_effect(hparams, name):
    """Return HParams in which a field has no effect, for each reason; none if it always has one."""
    other, values = HPARAMS[name].metadata['only_with'] or (name, [])
    if not values:
        return []
    field = HPARAMS[other]
    others = [value for value in valid_values(field) if value not in values]
    return [dataclasses.replace(hparams, **{other: value}) for value in others]
