"""Data sets as functions from factors to images.

>>> import unweave as uw
>>> data = uw.data.load("dsprites")     # doctest: +SKIP
>>> data.images([0, 737_279]).shape     # doctest: +SKIP
(2, 64, 64, 1)
"""

from unweave.data.dataset import Dataset
from unweave.data.entangle import entangle
from unweave.data.entanglement import Entanglement, householder
from unweave.data.factors import FactorSpace
from unweave.data.own.arrays import from_arrays
from unweave.data.own.folders import from_folder
from unweave.data.own.functions import from_function
from unweave.data.registry import find, load, names
from unweave.data.sources import Mixing, SimulatedSources, simulate_sources
from unweave.data.storage.prepared import data_folder
from unweave.data.supervision.pairs import sample_pairs
from unweave.data.supervision.weak import LabelledSubset, correlate, labelled_subset

__all__ = [
    "Dataset",
    "Entanglement",
    "FactorSpace",
    "LabelledSubset",
    "Mixing",
    "SimulatedSources",
    "correlate",
    "data_folder",
    "entangle",
    "find",
    "from_arrays",
    "from_folder",
    "from_function",
    "householder",
    "labelled_subset",
    "load",
    "names",
    "sample_pairs",
    "simulate_sources",
]
