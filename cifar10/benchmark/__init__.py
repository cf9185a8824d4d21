"""The benchmark, its baseline (the reference), and the check of this machine against NumPy."""
