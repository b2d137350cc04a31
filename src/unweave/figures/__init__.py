"""Pictures of data sets, methods and runs; the figures and tables of papers; the report of a study."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
