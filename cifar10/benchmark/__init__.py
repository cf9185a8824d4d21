"""The benchmark, its baseline (the classic formulation), and the comparison of runs."""
