"""Command line of the scripts: a quiet start, flags, the plan, errors in one line."""
