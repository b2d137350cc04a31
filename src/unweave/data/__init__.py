"""Data sets as functions from factors to images.

Examples
--------
>>> data = uw.data.load("pendulum")
>>> data.images([[1.0, 0.5, 1.0], [2.0, 0.5, 1.0]]).shape
(2, 100)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
