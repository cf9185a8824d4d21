"""Data sets on disk: layout, verification, sources."""
