"""The benchmark, and its baseline (the reference)."""
