"""The metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from unweave.arrays import ArrayLike
from unweave.errors import ArgumentError
from unweave.metrics.metric import Metric, Protocol
from unweave.metrics.result import Score
from unweave.registry import Registry

# In the order in which they are listed: those of Locatello et al. first.
_BUILTIN = (
    "interventions.beta_vae",
    "interventions.factor_vae",
    "information.mig",
    "information.modularity",
    "predictors.explicitness",
    "predictors.dci",
    "predictors.sap",
    "predictors.dci_es",
    "interventions.z_diff",
    "interventions.z_min_variance",
    "interventions.irs",
    "information.rmig",
    "information.mig_sup",
    "information.dcimig",
    "information.jemmig",
    "information.infomec",
    "predictors.mcc",
    "predictors.linear_r2",
    "predictors.latent_factor_correlation",
    "predictors.downstream",
    "predictors.downstream_mlp",
    "predictors.attribute_classification",
    "unlabelled.gaussian_total_correlation",
    "unlabelled.wasserstein_correlation",
    "unlabelled.code_mutual_information",
    "unlabelled.monte_carlo_total_correlation",
    "unlabelled.information_invariance",
    "unlabelled.windin",
    "unlabelled.udr",
)


def _from_entry_point(name: str, loaded: object) -> Metric:
    """A metric, or a function of codes and factors, that an installed package offers under a name."""
    if not isinstance(loaded, Metric) and not callable(loaded):
        raise ArgumentError("entry point", loaded, "needs a metric, or a function of codes and factors")
    return loaded if isinstance(loaded, Metric) else Metric(name, loaded)


METRICS: Registry[Metric] = Registry(
    "metric",
    "unweave.metrics",
    {
        name: f"unweave.metrics.{group}.{name}:{name}"
        for group, name in (path.split(".") for path in _BUILTIN)
    },
    _from_entry_point,
)


def score(
    metric: str | Metric | Callable[..., Score | float],
    codes: Any,
    factors: ArrayLike | None = None,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
    *,
    protocol: Protocol = "paper",
    bootstrap: int = 0,
    **params: Any,
) -> Score:
    """Score a representation given as arrays, from any encoder of any framework.

    Parameters
    ----------
    metric
        a metric's name, a metric, or any function from codes (n, D) and factors (n, K) to a number or a Score.
    codes, factors
        (n, D) finite numbers and (n, K) whole numbers, strings or booleans; "mcc" and "linear_r2" take any
        numbers. For "udr", ``codes`` is a list of such arrays, one per model, on the same images. A metric that
        does not use factors needs none.
    test
        (codes, factors) of other points, for a metric that learns on some points and is judged on others.
        Without it two thirds of the rows, drawn by ``seed``, are for learning and the rest for judging.
    seed
        of everything random.
    protocol
        "paper" for the settings of the text of Locatello et al., "dlib" for those of their code, disentanglement_lib.
    bootstrap
        how many resamplings to make for a 95 % interval, put into ``details["interval"]``. Each takes a random
        half of the rows, without repeating any: repeated rows would count as information in many metrics. Halves
        spread around their mean as whole samples do, so the interval is the value plus that spread. It is not
        clipped to the metric's range: a bound may pass 1.
    params
        the metric's parameters.

    Returns
    -------
    Score
        the value, its details and the parameters.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(0, 4, (1000, 2))
    >>> codes = factors + 0.1 * rng.standard_normal(factors.shape)
    >>> uw.metrics.score("mig", codes, factors, num_bins=10)
    mig = 0.99...
    >>> uw.metrics.score(lambda codes, factors: np.corrcoef(codes[:, 0], factors[:, 0])[0, 1], codes, factors)
    function = 0.99...
    """
    return as_metric(metric).score(
        codes, factors, test, seed, protocol=protocol, bootstrap=bootstrap, **params
    )


@overload
def register_metric(name: str, **facts: Any) -> Callable[[Callable[..., Score | float]], Metric]: ...
@overload
def register_metric(name: Callable[..., Score | float]) -> Metric: ...
def register_metric(name: Any, **facts: Any) -> Any:
    """Make a metric of a function, and make it known by name: to ``score``, ``evaluate``, studies and commands.

    Parameters
    ----------
    name
        the metric's name. ``@register_metric`` without brackets takes the function's name.
    facts
        the fields of :class:`Metric`: ``label``, ``higher_is_better``, ``takes``, ``factors``, ``protocols``, …

    Returns
    -------
    Metric
        which is called with arrays.

    Examples
    --------
    >>> @uw.metrics.register_metric("spread", label="Spread", higher_is_better=False)
    ... def spread(codes, factors, *, power: float = 2.0):
    ...     return np.mean(np.abs(codes - codes.mean(axis=0)) ** power)
    >>> spread([[0.0], [2.0]], [0, 1])
    spread = 1
    >>> uw.metrics.score("spread", [[0.0], [2.0]], [0, 1], power=3)
    spread = 1
    >>> uw.metrics.METRICS.unregister("spread")
    """
    if callable(name):
        return register_metric(name.__name__)(name)

    def register(function: Callable[..., Score | float]) -> Metric:
        metric = Metric(name, function, **facts)
        METRICS.register(
            name, metric, source=function, builtin=function.__module__.startswith("unweave.metrics.")
        )
        return metric

    return register


def as_metric(metric: str | Metric | Callable[..., Score | float]) -> Metric:
    """A metric by its name, or a function of codes and factors as a metric that is not registered.

    Examples
    --------
    >>> uw.metrics.as_metric("mig") is uw.metrics.mig
    True
    >>> uw.metrics.as_metric(lambda codes, factors: codes.std()).name
    'function'
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return METRICS[metric]
    if not callable(metric):
        raise ArgumentError("metric", metric, "needs a name or a function of codes and factors")
    name = getattr(metric, "__name__", "function")
    return Metric(name if name.isidentifier() else "function", metric)


def names() -> list[str]:
    """The names of all metrics, as ``score`` takes them.

    Examples
    --------
    >>> uw.metrics.names()[:3]
    ['beta_vae', 'factor_vae', 'mig']
    """
    return list(METRICS)
