"""Training run on disk."""
