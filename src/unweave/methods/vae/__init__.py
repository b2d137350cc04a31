"""Variational autoencoders: one file per method, beside the parts that they share."""
