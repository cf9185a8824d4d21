"""Metrics of an evaluation, as text, figures and TensorBoard summaries."""
