"""Data sets as functions from factors to images.

>>> import unweave as uw
>>> data = uw.data.load("dsprites")     # doctest: +SKIP
>>> data.images([0, 737_279]).shape     # doctest: +SKIP
(2, 64, 64, 1)
"""

from unweave.data.dataset import Dataset
from unweave.data.factors import FactorSpace
from unweave.data.registry import find, load, names
from unweave.data.storage import data_folder

__all__ = ["Dataset", "FactorSpace", "data_folder", "find", "load", "names"]
