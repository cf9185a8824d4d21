"""Modules of tests/soak.py."""
