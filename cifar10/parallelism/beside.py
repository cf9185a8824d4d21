"""A device function for what is computed from variables: it is done where they are, so that they
are not sent elsewhere."""


def first_input(op):
    """The device of an operation's first input, if it has no device of its own."""
    while op.inputs and not op.device:  # nor does reading a variable have one
        op = op.inputs[0].op
    return op.device
