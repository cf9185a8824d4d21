"""Serving a trained model without this package."""
