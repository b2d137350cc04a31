"""Metrics that hold a factor fixed and watch the codes."""
