"""The published data sets, one file each."""
