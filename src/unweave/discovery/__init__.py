"""What varies in a folder of photographs: images in, a page for people out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
