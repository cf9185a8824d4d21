"""Placement on several devices: what a layer computes, which device holds what, and what crosses
between devices."""
