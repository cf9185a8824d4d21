"""Measuring.

The benchmark, the classic formulation that it compares with, and runs compared by their event
files.
"""
