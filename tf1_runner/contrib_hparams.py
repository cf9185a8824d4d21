"""tf.contrib.training.HParams: hyperparameters by name."""

import re

# NAME=VALUE or NAME=[VALUE, VALUE], up to a comma or the end.
_ASSIGNMENT = re.compile(
    r'(?P<name>[a-zA-Z][\w.]*)\s*=\s*(\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))(,\s*|$)'
)
_BOOLS = {'true': True, 'True': True, 'false': False, 'False': False}


class ContribHParams:
    """Hyperparameters as attributes; the type of the first value stays."""

    def __init__(self, **values):
        """Set the names and the values: bool, int, float, str, a list of one of them, or others."""
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

    def parse(self, values):
        """Set hyperparameters from a string like 'rate=0.1,layers=[64, 32]'; return self.

        Raises:
          ValueError: the string has another form, a name that is unknown, or a value of another
            type.
        """
        end = 0
        while end < len(values):
            found = _ASSIGNMENT.match(values, end)
            if not found:
                raise ValueError(f'Malformed hyperparameter value: {values[end:]}')
            name, texts, end = *found.group('name', 'list'), found.end()
            if name not in self._hparam_types:
                raise ValueError(f'Unknown hyperparameter type for {name}')
            kind, is_list = self._hparam_types[name]
            if is_list != (texts is not None):
                raise ValueError(f'Must pass {"a list" if is_list else "one value"} for {name}')
            if is_list:
                value = [_parse(name, text, kind) for text in re.findall('[^ ,]+', texts)]
            else:
                value = _parse(name, found.group('value'), kind)
            setattr(self, name, value)
        return self


def _parse(name, text, kind):
    """Return the value of a text."""
    try:
        if kind is bool:
            return _BOOLS[text] if text in _BOOLS else bool(int(text))
        return kind(text)
    except ValueError:
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' from {text!r}")
