"""A study's report: every figure and table of the papers that its results allow, on one page."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
