"""Command line of the scripts: flags, Job, one-line errors."""
