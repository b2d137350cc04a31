"""Readers of the file formats that data sets come in. Each refuses a damaged file with one clear error."""
