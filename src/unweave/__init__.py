"""unweave: learn, measure and compare disentangled representations."""

from importlib.metadata import version as _version

from unweave import data
from unweave.errors import UnweaveError

__version__ = _version("unweave")
__all__ = ["UnweaveError", "__version__", "data"]
