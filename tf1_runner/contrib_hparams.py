"""tf.contrib.training.HParams: hyperparameters by name."""

import json
import numbers
import re

# NAME=VALUE or NAME=[VALUE, VALUE], up to a comma or the end; NAME may have an index.
_ASSIGNMENT = re.compile(
    r'(?P<name>[a-zA-Z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*'
    r'(\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))(,\s*|$)'
)
_BOOLS = {'true': True, 'True': True, 'false': False, 'False': False}


def parse_values(values, type_map, ignore_unknown=False):
    """Parse a string like 'rate=0.1,layers=[64, 32],sizes[1]=3'.

    Args:
      values: the string.
      type_map: dict of types by name; for a list, the type of its values.
      ignore_unknown: True to skip names that are not in type_map.

    Returns:
      A dict of values by name: a value, a list, or for indices a dict of values by index.

    Raises:
      ValueError: the string has another form, a name that is unknown or occurs twice, or a value of
        another type.
    """
    parsed, end = {}, 0
    while end < len(values):
        found = _ASSIGNMENT.match(values, end)
        if not found:
            raise ValueError(f'Malformed hyperparameter value: {values[end:]}')
        name, index, texts, end = *found.group('name', 'index', 'list'), found.end()
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f'Unknown hyperparameter type for {name}')
        if texts is None:
            value = _parse(name, found.group('value'), type_map[name])
        elif index:
            raise ValueError('Assignment of a list to a list index.')
        else:
            value = [_parse(name, text, type_map[name]) for text in re.findall('[^ ,]+', texts)]
        target, key, label = parsed, name, name
        if index and isinstance(parsed.setdefault(name, {}), dict):
            target, key, label = parsed[name], int(index), f'{name}[{int(index)}]'
        if key in target:
            raise ValueError(f"Multiple assignments to variable '{label}' in {values}")
        target[key] = value
    return parsed


class ContribHParams:
    """Hyperparameters as attributes; the type of the first value stays."""

    def __init__(self, hparam_def=None, model_structure=None, **values):
        """Set the names and the values: bool, int, float, str, a list of one of them, or others.

        Raises:
          ValueError: see `add_hparam`; or an argument is given that is gone: hparam_def or
            model_structure.
        """
        if hparam_def or model_structure:
            raise ValueError(
                'HParams no longer takes hparam_def and model_structure: give names and values'
            )
        self._hparam_types = {}  # by name: (type of the value or of a list's values, is a list)
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        """Add a hyperparameter.

        Raises:
          ValueError: the name is taken, or the value is an empty list.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f'Hyperparameter name is reserved: {name}')
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f'Multi-valued hyperparameters cannot be empty: {name}')
        self._hparam_types[name] = type(value[0] if is_list else value), is_list
        setattr(self, name, value)

    def set_hparam(self, name, value):
        """Set a hyperparameter to a value of its type.

        Raises:
          KeyError: there is no such hyperparameter.
          ValueError: the value has another type.
        """
        setattr(self, name, self._convert(name, value))

    def _convert(self, name, value):
        """Return a value as one of the type of a hyperparameter; see `set_hparam`."""
        kind, is_list = self._hparam_types[name]
        if is_list and not isinstance(value, list):
            raise ValueError(f'Must pass a list for multi-valued parameter: {name}')
        if isinstance(value, list) and not is_list:
            raise ValueError(f'Must not pass a list for single-valued parameter: {name}')
        return [_cast(name, one, kind) for one in value] if is_list else _cast(name, value, kind)

    def del_hparam(self, name):
        """Remove a hyperparameter, if it exists."""
        if self._hparam_types.pop(name, None):
            delattr(self, name)

    def values(self):
        """Return a dict of all values by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key, default=None):
        """Return the value of a hyperparameter, or the default if there is none.

        Raises:
          ValueError: the default has another type than the hyperparameter.
        """
        if key not in self:
            return default
        if default is not None:
            self._convert(key, default)
        return getattr(self, key)

    def override_from_dict(self, values_dict):
        """Set the hyperparameters of a dict; return self. See `set_hparam`."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict  # its older name

    def parse(self, values):
        """Set hyperparameters from a string like 'rate=0.1,layers=[64, 32]'; return self.

        Raises:
          ValueError: see `parse_values`.
        """
        types = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, types))

    def to_json(self, indent=None, separators=None, sort_keys=False):
        """Return the values as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json):
        """Set the hyperparameters of a JSON object; return self."""
        return self.override_from_dict(json.loads(values_json))

    def __contains__(self, name):
        return name in self._hparam_types

    def __str__(self):
        return ','.join(f'{name}={value}' for name, value in self.values().items())

    def __repr__(self):
        return f'HParams({sorted(self.values().items())})'


def _cast(name, value, kind):
    """Return a value as a `kind`: an int may become a float, a number of NumPy one of Python."""
    if kind in (type(value), type(None)):
        return value
    families = [(str, bytes), bool, numbers.Integral, numbers.Number]
    is_wrong = any(issubclass(kind, one) and not isinstance(value, one) for one in families)
    if is_wrong or isinstance(value, bool) and kind is not bool:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)


def _parse(name, text, kind):
    """Return the value of a text."""
    try:
        if kind is bool:
            return _BOOLS[text] if text in _BOOLS else bool(int(text))
        return kind(text)
    except ValueError:
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' from {text!r}")
