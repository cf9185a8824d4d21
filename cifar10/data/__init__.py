"""Data sets on disk: their layout and verification, and where they come from."""
