"""Generative adversarial networks: one file per method, beside the parts that they share."""
