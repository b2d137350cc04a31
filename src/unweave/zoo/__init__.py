"""Trained models that come with the package, and how to publish others: a run with a card, checked by its scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
