"""A device function for what is computed from variables: it is done where they are, so that they are not sent elsewhere."""


def first_input(op):
    """The device of an operation's first input; its own if it has no input."""
    source = op
    while source.inputs and (source is op or not source.device):  # reading a variable has no device of its own
        source = source.inputs[0].op
    return source.device if op.inputs else op.device
