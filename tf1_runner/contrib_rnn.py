"""Recurrent networks of tf.contrib.rnn and tf.contrib.legacy_seq2seq.

They have the variable names of TensorFlow 1.15.
"""

import math

import tensorflow.compat.v1 as tf

from tf1_runner.private_api import rnn_cell


def lstm_block_cell(
    num_units,
    forget_bias=1.0,
    cell_clip=None,
    use_peephole=False,
    dtype=None,
    reuse=None,
    name='lstm_cell',
):
    """Return a cell that computes what LSTMBlockCell does, with the same variables."""
    return rnn_cell.LSTMCell(
        num_units,
        use_peephole,
        cell_clip,
        forget_bias=forget_bias,
        reuse=reuse,
        name=name,
        dtype=dtype,
    )


class _Wrapper(rnn_cell.RNNCell):
    """Cell around another cell."""

    def __init__(self, cell, reuse):
        super().__init__(_reuse=reuse)
        self._cell = cell

    @property
    def state_size(self):
        """The sizes of the other cell's state."""
        return self._cell.state_size

    @property
    def output_size(self):
        """The size of the other cell's output."""
        return self._cell.output_size

    def zero_state(self, batch_size, dtype):
        """Return the other cell's initial state."""
        return self._cell.zero_state(batch_size, dtype)


class EmbeddingWrapper(_Wrapper):
    """Cell whose inputs are class numbers, [batch] or [batch, 1], for an embedding."""

    def __init__(self, cell, embedding_classes, embedding_size, initializer=None, reuse=None):
        """Set the shape of the embedding, [classes, size], and its initializer."""
        super().__init__(cell, reuse)
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs, state):
        """Return the output and the new state."""
        default = tf.random_uniform_initializer(-math.sqrt(3), math.sqrt(3))  # The variance is 1.
        initializer = self._initializer or tf.get_variable_scope().initializer or default
        dtype = tf.nest.flatten(state)[0].dtype
        with tf.device('/cpu:0'):
            embedding = tf.get_variable('embedding', self._shape, dtype, initializer)
            embedded = tf.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1]))
            return self._cell(embedded, state)


class InputProjectionWrapper(_Wrapper):
    """Cell after a linear layer of its inputs."""

    def __init__(self, cell, num_proj, activation=None, input_size=None, reuse=None):
        """Set the size and the activation of the layer; TensorFlow ignores input_size, too."""
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs, state):
        """Return the output and the new state."""
        return self._cell(_linear(inputs, self._num_proj, self._activation), state)


class OutputProjectionWrapper(_Wrapper):
    """Cell before a linear layer of its outputs."""

    def __init__(self, cell, output_size, activation=None, reuse=None):
        """Set the size and the activation of the layer."""
        super().__init__(cell, reuse)
        self._output_size, self._activation = output_size, activation

    @property
    def output_size(self):
        """The size of the layer's output."""
        return self._output_size

    def call(self, inputs, state):
        """Return the layer's output and the new state of the cell."""
        output, state = self._cell(inputs, state)
        return _linear(output, self._output_size, self._activation), state


def _linear(inputs, output_size, activation):
    kernel = tf.get_variable('kernel', [inputs.shape[1], output_size], inputs.dtype)
    bias = tf.get_variable('bias', [output_size], inputs.dtype, tf.zeros_initializer())
    outputs = inputs @ kernel + bias
    return activation(outputs) if activation else outputs


def rnn_decoder(decoder_inputs, initial_state, cell, loop_function=None, scope=None):
    """Run a cell over a list of inputs.

    Args:
      decoder_inputs: list of [batch, input_size], one per step.
      initial_state: state of the cell.
      cell: an RNN cell.
      loop_function: None, or a function of an output [batch, output_size] and the number of the
        next step, which returns its input instead of that in the list.
      scope: variable scope, or its name.

    Returns:
      The list of the outputs, and the last state.
    """
    with tf.variable_scope(scope or 'rnn_decoder'):
        outputs, state = [], initial_state
        for step, inputs in enumerate(decoder_inputs):
            if step and loop_function:
                with tf.variable_scope('loop_function', reuse=True):
                    inputs = loop_function(outputs[-1], step)
            if step:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
        return outputs, state
