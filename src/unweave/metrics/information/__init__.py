"""Metrics that count: mutual information between codes and factors."""
