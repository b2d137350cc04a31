"""The figures and tables of the papers, drawn from any study that has what they need."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
