"""The one exception that a user's mistake raises, and what TensorFlow's errors say in a line."""


class UserError(Exception):
    """Bad input: one line that names the culprit and the remedy.

    The scripts print it and exit with status 1, as they do for errors of the system. A bug keeps its traceback.
    """


def reason(error):
    """What a tf.errors.OpError says, in one line: without the node and the stack that it begins and ends with."""
    lines = [line.strip() for line in error.message.splitlines()]
    told = [line for line in lines if line and not line.startswith(
        ('Graph execution error', 'Detected at node', 'Node:', 'File "', '[[', '2 root', '(0)', '(1)', 'Original stack'))]
    return told[0] if told else type(error).__name__
