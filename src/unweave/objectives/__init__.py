"""Objectives: pure functions on tensors, the terms from which methods compose their losses.

A function here knows no network and no data set. Shapes: n samples, D latents, images (n, …).
The likelihoods of images are called through their module, as in ``reconstruction.bernoulli``:
the name ``gaussian`` belongs to the module of the encoder's Gaussian.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
