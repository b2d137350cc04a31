import numpy as np
import pytest
import torch

import unweave as uw


@pytest.fixture(scope="session")
def vectors():
    """A small data set of vectors: methods on it are fast, and can be computed in float64."""
    rng = np.random.default_rng(0)
    factors = {"a": np.repeat(np.arange(8), 8), "b": np.tile(np.arange(8), 8)}
    return uw.data.from_arrays(rng.random((64, 6)).astype(np.float32), factors)


@pytest.fixture(autouse=True)
def _reproducible():
    torch.manual_seed(0)
