"""tf.contrib.training.HParams: hyperparameters by name."""

import json
import re

# NAME=VALUE or NAME=[VALUE, VALUE], up to a comma or the end.
_ASSIGNMENT = re.compile(
    r'\s*(?P<name>\w+)\s*=\s*(\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))\s*(?:,|$)'
)


class HParams:
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
        values = value if isinstance(value, list) else [value]
        kind = type(before[0] if isinstance(before, list) else before)
        values = [_convert(name, one, kind) for one in values]
        setattr(self, name, values if isinstance(value, list) else values[0])

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
          ValueError: the string has another form, an unknown name, or a value of another type.
        """
        end = 0
        while end < len(values):
            found = _ASSIGNMENT.match(values, end)
            if not found:
                raise ValueError(f'Cannot parse the hyperparameters {values[end:]!r}')
            name, text, end = found.group('name'), found.group('value'), found.end()
            if name not in self:
                raise ValueError(f'Unknown hyperparameter {name}')
            is_list = text is None
            self.set_hparam(name, found.group('list').split(',') if is_list else text)
        return self

    def to_json(self, indent=None, separators=None, sort_keys=False):
        """Return the values as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json):
        """Set the hyperparameters of a JSON object; return self."""
        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, name):
        return name in vars(self)

    def __str__(self):
        return str(sorted(self.values().items()))

    __repr__ = __str__


def _convert(name, value, kind):
    """Return a value, or the text of one, as a `kind`."""
    if kind is type(None) or isinstance(value, kind) and not isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if kind is bool and text in ('true', 'false', '1', '0'):
        return text in ('true', '1')
    if kind is str or kind in (int, float) and re.fullmatch(r'[-+]?[\d.]+(e[-+]?\d+)?', text):
        return kind(str(value).strip())
    raise ValueError(f'Hyperparameter {name} is {kind.__name__}, not {value!r}')
