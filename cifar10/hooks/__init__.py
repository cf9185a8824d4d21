"""Hooks of the training session."""
