"""Data on disk: prepared once, filled on demand, downloaded and checked."""
