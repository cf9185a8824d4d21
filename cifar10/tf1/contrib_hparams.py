"""tf.contrib.training.HParams: hyperparameters by name."""

import json
import numbers
import re

# NAME=VALUE or NAME=[VALUE, VALUE], up to a comma or the end.
_ASSIGNMENT = re.compile(
    r'\s*(?P<name>\w+)\s*=\s*(\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))\s*(?:,\s*|$)'
)
_BOOLS = {'true': True, '1': True, 'false': False, '0': False}


class ContribHParams:
    """Hyperparameters as attributes; the type of the first value stays."""

    def __init__(self, **values):
        """Set the names and the values: bool, int, float, str, or a list of one of them."""
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        """Add a hyperparameter.

        Raises:
          ValueError: the name is taken, or the value is an empty list.
        """
        if hasattr(self, name):
            raise ValueError(f'Hyperparameter name is reserved: {name}')
        if value == []:
            raise ValueError(f'Hyperparameter {name}: an empty list has no type')
        setattr(self, name, value)

    def set_hparam(self, name, value):
        """Set a hyperparameter to a value of its type.

        Raises:
          KeyError: there is no such hyperparameter.
          ValueError: the value has another type.
        """
        before = self.values()[name]
        if isinstance(value, list) != isinstance(before, list):
            raise ValueError(f'Hyperparameter {name} is {before!r}, not {value!r}: one is a list')
        kind = _type(before)
        values = [_convert(name, one, kind) for one in value] if isinstance(value, list) else None
        setattr(self, name, _convert(name, value, kind) if values is None else values)

    def del_hparam(self, name):
        """Remove a hyperparameter, if it exists."""
        vars(self).pop(name, None)

    def values(self):
        """Return a dict of all values by name."""
        return dict(vars(self))

    def get(self, key, default=None):
        """Return the value of a hyperparameter, or the default if there is none."""
        return self.values().get(key, default)

    def override_from_dict(self, values_dict):
        """Set the hyperparameters of a dict; return self. See `set_hparam`."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values):
        """Set hyperparameters from a string like 'rate=0.1,layers=[64, 32]'; return self.

        Raises:
          ValueError: the string has another form, a name that is unknown or occurs twice, or a
            value of another type.
        """
        parsed, end = {}, 0
        while end < len(values):
            found = _ASSIGNMENT.match(values, end)
            name = found and found.group('name')
            if not found or name not in self or name in parsed:
                raise ValueError(f'Cannot parse the hyperparameters {values[end:]!r}')
            texts, end = found.group('list'), found.end()
            kind = _type(vars(self)[name])
            if texts is None:
                parsed[name] = _parse(name, found.group('value').strip(), kind)
            else:
                parsed[name] = [_parse(name, text, kind) for text in re.findall(r'[^ ,]+', texts)]
        return self.override_from_dict(parsed)

    def to_json(self, indent=None, separators=None, sort_keys=False):
        """Return the values as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json):
        """Set the hyperparameters of a JSON object; return self."""
        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, name):
        return name in vars(self)

    def __str__(self):
        return ','.join(f'{name}={value}' for name, value in self.values().items())

    def __repr__(self):
        return f'HParams({sorted(self.values().items())})'


def _type(value):
    """Return the type of a hyperparameter, or of the values in its list."""
    return type((value or [None])[0] if isinstance(value, list) else value)


def _convert(name, value, kind):
    """Return a value as a `kind`: an int may become a float, a number of NumPy one of Python."""
    if kind is type(None):
        return value
    accepted = {int: numbers.Integral, float: numbers.Real}.get(kind, kind)
    if isinstance(value, accepted) and isinstance(value, bool) == (kind is bool):
        return kind(value)
    raise ValueError(f'Hyperparameter {name} is {kind.__name__}, not {value!r}')


def _parse(name, text, kind):
    """Return the value of a text."""
    try:
        return _BOOLS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ValueError(f'Hyperparameter {name} is {kind.__name__}, not {text!r}')
