"""Metrics of an evaluation; as text, as figures, for TensorBoard."""
