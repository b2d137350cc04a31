"""Multi-stage models: methods that build on one that was trained before and is frozen."""
