"""Metrics of whatever numbers people have: a clear error, or a finite score. Never a raw error, never a silent NaN."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unweave.errors import UnweaveError
from unweave.metrics import METRICS

NAMES = sorted(
    name
    for name, metric in METRICS.items()
    if metric.takes in ("arrays", "sample", "split")
    and name not in ("udr", "dci", "downstream", "explicitness")
)
EXTREME = [0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e300, -1e300, 2.0**62, -(2.0**62), 1e-38, 3.4e38]
EXTREME += [math.nan, math.inf, -math.inf]
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.uint64, np.int8, np.bool_]


@st.composite
def codes(draw, rows):
    dtype = draw(st.sampled_from(DTYPES))
    shape = (rows, draw(st.integers(1, 4)))
    if np.dtype(dtype).kind != "f":
        return draw(hnp.arrays(dtype, shape))
    floats = st.one_of(st.sampled_from(EXTREME), st.floats(-10, 10))
    values = draw(st.lists(floats, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    with np.errstate(over="ignore"):
        return np.array(values).astype(dtype).reshape(shape)


@st.composite
def factors(draw, rows):
    kind = draw(st.sampled_from(["small", "small", "small", "large", "float"]))
    shape = (rows, draw(st.integers(1, 3)))
    if kind == "float":
        return draw(hnp.arrays(np.float64, shape, elements=st.sampled_from(EXTREME)))
    limits = (0, 3) if kind == "small" else (-(2**62) - 5, 2**62 + 5)
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(*limits)))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_extreme_inputs_give_a_clear_error_or_a_finite_score(name, data):
    rows = data.draw(st.sampled_from([1, 2, 3, 12, 24]))
    given_codes, given_factors = data.draw(codes(rows)), data.draw(factors(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = outcome(METRICS[name], given_codes, given_factors)
    assert isinstance(score, str) or math.isfinite(score)


def outcome(metric, codes, factors):
    """A score's value, or the message of a clear error."""
    try:
        return metric(codes, factors).value
    except UnweaveError as error:
        return str(error)
