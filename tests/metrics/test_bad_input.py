"""What every metric makes of input that is wrong or degenerate: a clear error, or a defined score."""

import inspect

import numpy as np
import pytest

from unweave import metrics
from unweave.errors import ArgumentError

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 2, (90, 3))
CODES = FACTORS + RNG.normal(0, 0.1, FACTORS.shape)
NOISE = np.full(CODES.shape, -4.0)
VOTES = {"num_train": 60, "num_eval": 30}
QUICK = {
    "beta_vae": VOTES,
    "factor_vae": VOTES,
    "z_diff": VOTES,
    "z_min_variance": VOTES,
    "dci": {"learner": "l1_svm"},
    "dci_es": {"depths": (1, 2), "trees": 2},
    "downstream": {"sizes": (10,)},
    "downstream_mlp": {"hidden": (3,), "steps": 5},
}
NAMES = metrics.names()
WITH_FACTORS = [name for name in NAMES if metrics.METRICS[name].uses_factors]


def score(name, codes, factors=FACTORS, **params):
    kind = metrics.METRICS[name].takes
    options = {**QUICK.get(name, {}), **params}
    if kind == "posterior":
        noise = np.resize(NOISE, codes.shape) if isinstance(codes, np.ndarray) else NOISE
        return metrics.score(name, codes, log_variance=noise, **options)
    if kind == "models":
        return metrics.score(name, [codes, codes], **options)
    return metrics.score(name, codes, factors, **options)


def changed(value):
    codes = CODES.copy()
    codes[3, 1] = value
    return codes


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        (changed(np.nan), r"\[3, 1\] = nan: needs finite"),
        (changed(-np.inf), r"\[3, 1\] = -inf: needs finite"),
        (changed(1e200), r"\[3, 1\] = 1e\+200: needs numbers of at most 1e100"),
        (CODES * 1e-200, "needs a range of at least 1e-100"),
        (CODES.astype(str), "needs numbers"),
        (CODES + 1j, "needs numbers"),
        (CODES.astype(object), "needs numbers"),
        (CODES > 0.5, "needs numbers"),
        (CODES[None], "needs numbers of shape"),
        (CODES[:, :0], "needs numbers of shape"),
        (None, "needs numbers"),
        ([[1.0, 2.0], [3.0]], "cannot be converted to a numpy array"),
        (CODES[:0], "at least one point"),
    ],
    ids=[
        "nan",
        "inf",
        "huge",
        "tiny",
        "text",
        "complex",
        "object",
        "bool",
        "3d",
        "none",
        "None",
        "ragged",
        "0",
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_codes_that_are_refused(name, codes, told):
    with pytest.raises(ArgumentError, match=told):
        score(name, codes, FACTORS[: len(codes) if hasattr(codes, "__len__") else None])


@pytest.mark.parametrize(
    ("factors", "told"),
    [
        (FACTORS[:-1], "factors = '89 rows': there are 90 codes"),
        (FACTORS[None], r"needs shape \(n, K\)"),
        (FACTORS * np.nan, r"factors\[0, 0\] = nan"),
        (FACTORS * 1j, "dtype complex"),
        (FACTORS.astype(object), "dtype object"),
        (None, "needs the factors"),
    ],
    ids=["lengths", "3d", "nan", "complex", "object", "None"],
)
@pytest.mark.parametrize("name", WITH_FACTORS)
def test_factors_that_are_refused(name, factors, told):
    with pytest.raises(ArgumentError, match=told):
        score(name, CODES, factors)


@pytest.mark.parametrize("name", WITH_FACTORS)
def test_factors_that_are_not_whole(name):
    if metrics.METRICS[name].continuous:
        assert np.isfinite(score(name, CODES, FACTORS + 0.25 * CODES).value)
    else:
        with pytest.raises(ArgumentError, match="bin a continuous factor first"):
            score(name, CODES, FACTORS + 0.25)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1e90, 1e30, 1e-30, 1e-90])
def test_codes_of_any_size_have_a_score(name, size):
    if name == "dci_es" and size == 1e90:  # trees work in single precision
        with pytest.raises(ArgumentError, match=r"codes = .*e\+90: trees need"):
            score(name, CODES * size)
    else:
        assert np.isfinite(score(name, CODES * size).value)


# What has a value even though codes tell nothing, or cannot be told apart.
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e6])
def test_constant_codes_have_a_defined_score(name, constant):
    assert np.isfinite(score(name, np.full(CODES.shape, constant)).value)
    one = CODES.copy()
    one[:, 2] = constant
    assert np.isfinite(score(name, one).value)


@pytest.mark.parametrize("name", NAMES)
def test_a_factor_with_one_value(name):
    factors = FACTORS.copy()
    factors[:, 0] = 1
    assert np.isfinite(score(name, CODES, factors).value)


INFORMATION = ("mig", "rmig", "modularity", "mig_sup", "dcimig", "jemmig", "infomec", "linear_r2")
VOTING = ("beta_vae", "factor_vae", "z_diff", "z_min_variance")


@pytest.mark.parametrize("name", WITH_FACTORS)
def test_no_factor_that_varies(name):
    if name in (*INFORMATION, *VOTING):
        with pytest.raises(ArgumentError, match="factors = "):
            score(name, CODES, FACTORS * 0)
    else:
        assert np.isfinite(score(name, CODES, FACTORS * 0).value)


@pytest.mark.parametrize("name", WITH_FACTORS)
def test_fewer_rows_than_classes(name):
    """Every row is a class of its own."""
    codes, factors = CODES[:6], np.stack([RNG.permutation(6) for _ in range(3)], axis=1)
    if name in VOTING:
        with pytest.raises(ArgumentError, match="occurs twice"):
            score(name, codes, factors)
    elif name == "attribute_classification":
        with pytest.raises(ArgumentError, match="at most 2"):
            score(name, codes, factors)
    else:
        assert np.isfinite(score(name, codes, factors).value)


@pytest.mark.parametrize("name", NAMES)
def test_few_rows_have_a_score_or_an_error_of_ours(name):
    for n in (1, 2, 3, 4):
        try:
            found = score(name, CODES[:n], FACTORS[:n])
        except ArgumentError:
            continue
        assert np.isfinite(found.value), n


REAL = ("float", "Positive", "NonNegative", "NonNegative | None")
PARAMETERS = [
    (name, key)
    for name in NAMES
    for key in metrics.METRICS[name].parameters
    if key not in ("seed", "log_variance")
]


@pytest.mark.parametrize(("name", "key"), PARAMETERS)
def test_parameters_of_the_wrong_kind_are_named(name, key):
    """Where the signature says what kind of value a parameter has, nothing else gets through."""
    kind = str(inspect.signature(metrics.METRICS[name].function).parameters[key].annotation)
    for wrong in ("abc", -1, 2.5, float("nan"), None, True, (3, "x"), {}):
        if (wrong is None and "None" in (kind, kind[-4:])) or (wrong is True and kind == "bool"):
            continue
        if (wrong == 2.5 and kind in REAL) or (wrong == -1 and kind == "float"):
            continue  # allowed
        if wrong is None and kind == "Prune":
            continue
        with pytest.raises(ArgumentError, match=key):
            score(name, CODES, FACTORS, **{key: wrong})


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, None, "0", True])
@pytest.mark.parametrize("name", NAMES)
def test_seeds_that_are_refused(name, seed):
    with pytest.raises(ArgumentError, match="seed = "):
        score(name, CODES, FACTORS, seed=seed)


@pytest.mark.parametrize("test", [CODES, (CODES,), (CODES, FACTORS, FACTORS), "test"])
def test_test_points_that_are_no_pair(test):
    with pytest.raises(ArgumentError, match=r"test = .*needs a pair"):
        metrics.score("sap", CODES, FACTORS, test=test)


@pytest.mark.parametrize("wrong", [NOISE[:-1], NOISE * np.nan, NOISE.astype(str), NOISE - 1e6])
@pytest.mark.parametrize("name", ["rmig", "monte_carlo_total_correlation", "windin"])
def test_a_log_variance_that_is_refused(name, wrong):
    factors = FACTORS if name == "rmig" else None
    with pytest.raises(ArgumentError, match="log_variance"):
        metrics.score(name, CODES, factors, log_variance=wrong)


@pytest.mark.parametrize("name", [name for name in NAMES if not metrics.METRICS[name].uses_factors])
def test_factors_are_not_needed_where_they_are_not_used(name):
    if metrics.METRICS[name].takes == "sample":
        assert metrics.score(name, CODES).value == metrics.score(name, CODES, FACTORS).value
