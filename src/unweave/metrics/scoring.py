"""Scores of plain arrays, from any encoder of any framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.arrays import as_array, to_python
from unweave.errors import ArgumentError
from unweave.metrics.parameters import check_bootstrap, check_seed
from unweave.metrics.registry import call, check_params, find, on_posterior, on_samples
from unweave.metrics.score import Sample, Score, check_sample, check_samples
from unweave.metrics.unlabelled.posterior import check_posterior


def score(
    name: str,
    codes: Any,
    factors: npt.ArrayLike | None = None,
    test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    seed: int = 0,
    *,
    bootstrap: int = 0,
    **params: Any,
) -> Score:
    """Score a representation given as plain arrays, from any encoder of any framework.

    >>> score("mig", codes, factors).value                        # doctest: +SKIP
    0.42

    Parameters
    ----------
    codes, factors
        (n, D) finite numbers and (n, K) whole numbers, strings or booleans; "mcc" and "linear_r2" take any
        numbers. For "udr", ``codes`` is a list of such arrays, one per model, on the same images. A metric that
        does not look at factors needs none.
    test
        (codes, factors) of other points, for a metric that learns on some points and is judged on others.
        Without it two thirds of the rows, drawn by ``seed``, are for learning and the rest for judging.
    bootstrap
        how many resamplings to make for a 95 % interval, put into ``details["interval"]``. Each takes a random
        half of the rows, without repeating any: repeated rows would look like information to many metrics. Halves
        spread around their mean as whole samples do, so the interval is the value plus that spread. It is not
        clipped to the metric's range: a bound may pass 1.
    params
        the metric's own parameters.
    """
    metric, params = find(name), to_python(params)
    check_params(name, params)
    seed, bootstrap = check_seed(seed), check_bootstrap(bootstrap)
    if metric.kind == "models":
        if bootstrap:
            raise ArgumentError(
                "bootstrap", bootstrap, f"{name} is not a score of rows that can be resampled"
            )
        return call(metric, [codes], seed, params)
    if metric.kind == "posterior":
        return _of_posterior(name, codes, seed, params, bootstrap)
    if factors is None:
        if metric.factors:
            raise ArgumentError("factors", None, f"{name} needs the factors of the codes")
        factors = np.zeros(as_array(codes, "codes").shape[:1], dtype=np.int64)
    judged: Sample | None = None
    if test is None:
        train = check_sample(codes, factors, continuous=metric.continuous)
    else:
        if not isinstance(test, tuple | list) or len(test) != 2:
            raise ArgumentError("test", type(test).__name__, "needs a pair (codes, factors)")
        train, judged = check_samples((codes, factors), (test[0], test[1]), metric.continuous)
    if metric.kind == "split" and judged is None:
        train, judged = split(train, seed)
    return on_samples(metric, train, judged, seed, params, bootstrap)


def split(sample: Sample, seed: int) -> tuple[Sample, Sample]:
    """Two thirds and one third of the rows, drawn by the seed."""
    n = len(sample.codes)
    if n < 3:
        raise ArgumentError("codes", f"{n} rows", "needs at least 3 to split them; or give test points")
    order = np.random.default_rng(seed).permutation(n)
    parts = (order[: -(n // 3)], order[-(n // 3) :])
    return sample.rows(parts[0]), sample.rows(parts[1])


def _of_posterior(name: str, codes: Any, seed: int, params: dict[str, Any], bootstrap: int) -> Score:
    if params.get("log_variance") is None:
        told = f"{name} needs the log-variance of q(z|x) next to its mean"
        raise ArgumentError("log_variance", None, told)
    mean, log_variance = check_posterior(codes, params["log_variance"])
    own = {key: value for key, value in params.items() if key != "log_variance"}
    return on_posterior(find(name), mean, log_variance, seed, own, bootstrap)
