"""The parts of tests/soak.py."""
