"""The one exception that a user's mistake raises."""


class UserError(Exception):
    """Bad input: one line that names the culprit and the remedy.

    The scripts print it and exit with status 1; everything else is a bug and keeps its traceback.
    """
