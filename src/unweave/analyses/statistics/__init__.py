"""Intervals, rank correlations and tests, as all analyses use them."""
