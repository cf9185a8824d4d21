"""A training run on disk and on the machine."""
