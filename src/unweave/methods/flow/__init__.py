"""Methods with an exact density: mixtures and flows."""
