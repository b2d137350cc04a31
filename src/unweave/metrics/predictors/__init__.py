"""Metrics that learn to predict factors from codes."""
