"""Which device holds which variable: balanced by bytes."""

import tensorflow.compat.v1 as tf


class Balance:
    """Gives each new variable to the place that holds the fewest bytes of variables so far, the
    first one of several."""

    def __init__(self, places):
        """Begins with empty places, such as device names."""
        self._held = dict.fromkeys(places, 0)
        self._places = {}  # by the names of variables

    def place(self, name, shape, dtype):
        """The place of a variable, the same each time.

        Args:
          name: of the variable.
          shape, dtype: what tf.TensorShape and tf.as_dtype understand.
        """
        if name not in self._places:
            self._places[name] = min(self._held, key=self._held.get)
            self._held[self._places[name]] += (
                tf.TensorShape(shape).num_elements() * tf.as_dtype(dtype).size
            )
        return self._places[name]
