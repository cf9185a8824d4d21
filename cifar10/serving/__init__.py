"""Prediction, and export of a trained model."""
