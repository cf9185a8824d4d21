"""Values of the fields of HParams and RunSettings, from their metadata."""

import dataclasses
from typing import Optional

from cifar10.config import HPARAMS

FLOATS = float, Optional[float]


def other_value(field, value):
    """Return a valid value of a field that is not `value`."""
    low, high, choices = (field.metadata[name] for name in ('low', 'high', 'choices'))
    if choices:
        values = choices
    elif field.type is bool:
        values = [False, True]
    elif low is None:  # The field has no flag.
        values = [0.25, 0.5]
    elif field.type in FLOATS:
        values = [low + share * (min(high, low + 1) - low) for share in (0.25, 0.5)]
    else:
        values = [low + 1, low + 2]
    return next(other for other in values if other != value)


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
    metadata = HPARAMS[other].metadata
    others = metadata['choices'] or [0.0, 1.0]
    return [
        dataclasses.replace(hparams, **{other: value}) for value in others if value not in values
    ]
