"""Metrics of codes and posteriors alone, without factors."""
