"""A metric: a function of codes and factors, with its facts beside it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from unweave.arrays import ArrayLike, FloatArray, as_array, to_python
from unweave.errors import ArgumentError, unknown_name
from unweave.metrics.intervals import check_bootstrap, random_half, with_interval
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample, check_sample, check_samples, split_sample
from unweave.parameters import Seed, check_value, declared

Takes = Literal["arrays", "sample", "split", "interventions", "posterior", "models", "method"]
Factors = Literal["none", "any", "discrete", "two", "binary"]
Capability = Literal[
    "encodes", "decodes", "samples", "density", "evidence_bound", "refines", "categories", "generates"
]
Params = Mapping[str, Any]

# Where the text of Locatello et al. and their code, disentanglement_lib, differ: the defaults of a metric's function
# are the paper's, and it has settings for the code.
Protocol = Literal["paper", "dlib"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """A metric that is called with arrays: ``mig(codes, factors, num_bins=20) -> Score``.

    Made by :func:`~unweave.metrics.register_metric`; all facts on a metric are here and nowhere else.

    Parameters
    ----------
    name
        as studies and the command line spell it: "mig".
    function
        the formula itself. What it is called with is decided by ``takes``; its further parameters are those of the
        metric, declared by type and bounds (:mod:`unweave.parameters`). It gives a :class:`Score` or a number. If it
        has a parameter ``seed``, everything random about it follows from that.
    label
        as the papers write it: "MIG".
    higher_is_better
        its direction.
    takes
        what the function is called with:

        - "arrays": codes (n, D) and factors (n, K); codes alone if ``factors`` is "none".
        - "sample": the same as a :class:`~unweave.metrics.Sample`.
        - "split": two samples, one to learn from and one to judge on.
        - "interventions": something that gives the codes of images of chosen factors
          (:class:`~unweave.metrics.interventions.votes.Interventions`).
        - "posterior": mean and log-variance of q(z|x), both (n, D).
        - "models": the codes of several models on the same images.
        - "method": a trained method and its data; only ``uw.evaluate`` has these.
    factors
        what it needs of the factors: "none"; "any" numbers; "discrete" ones; "two" discrete ones that vary; only
        "binary" ones.
    in_sample
        of a metric that takes "split": whether arrays without test points are judged on the points that it learned
        from, as its authors do (the function is then called with None for the second). Else a third of them is kept
        to judge on. ``uw.evaluate`` by the protocol "paper" judges on other rows whichever it is.
    paper
        whether it is one of the metrics of Locatello et al. (2019).
    protocols
        settings by protocol, where they are not the function's defaults: ``{"dlib": {"learner": "gbt"}}``.
    protocol_notes
        of each parameter that a protocol sets: what it is about, and what it is in the paper and in the code.
    parts
        the labels of numbers in the details that are reported too: ``{"completeness": "DCI compl."}``.
    show_parts
        whether tables of scores print its parts below its value.
    sampled_parts
        what is computed from sampled codes whatever codes were asked for: names of details, "" for the value itself.
    rows
        further numbers of a score, by name, given the score and the names of the factors. The numbers in its
        details need no mention.
    sizes
        its parameters that are numbers of points: they may be reduced to try the metric.
    capabilities
        what a method must be able to do for a metric that takes one (:mod:`unweave.methods.method`).
    pictures
        whether it needs images (H, W, C) of one or three channels, not any observations.
    in_all
        whether ``"all"`` includes it. A slow one, or one that needs a download, is computed only if it is named.
    check
        called with all its parameters before any work: refuses what cannot be served here, such as a missing file.
    images
        how many images a metric that intervenes asks for, or how many passes of an image through a network a metric of
        a method needs, given all its parameters.
    seconds
        what it takes beyond that on one core, given all its parameters, where it cannot be timed on random codes.
    renamed
        old names of parameters, which still work, with a warning: ``{"penalty": "C"}``.

    Examples
    --------
    >>> uw.metrics.mig.label, uw.metrics.mig.higher_is_better, uw.metrics.mig.parameters["num_bins"]
    ('MIG', True, 20)
    """

    name: str
    function: Callable[..., Score | float]
    _: KW_ONLY
    label: str = ""
    higher_is_better: bool = True
    takes: Takes = "arrays"
    factors: Factors = "discrete"
    in_sample: bool = False
    paper: bool = False
    protocols: Mapping[str, Params] = field(default_factory=dict)
    protocol_notes: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    show_parts: bool = False
    sampled_parts: tuple[str, ...] = ()
    rows: Callable[[Score, Sequence[str]], Mapping[str, float]] | None = None
    sizes: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    pictures: bool = False
    in_all: bool = True
    check: Callable[[Params], None] | None = None
    images: Callable[[Params], int] | None = None
    seconds: Callable[[Params], float] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        facts = ("takes", "factors", "higher_is_better", "in_sample", "paper", "in_all", "capabilities")
        for name in facts:
            check_value(name, getattr(self, name), declared(Metric)[name])
        for protocol in self.protocols:
            if protocol not in PROTOCOLS:
                raise unknown_name("protocols", protocol, PROTOCOLS)
        attributes = {
            "label": self.label or self.name.replace("_", " "),
            "__name__": self.name,
            "__qualname__": getattr(self.function, "__qualname__", self.name),
            "__module__": self.function.__module__,
            "__wrapped__": self.function,
            "__signature__": self._public_signature(),
            "__doc__": self._public_doc(),
        }
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def __call__(self, *inputs: Any, **options: Any) -> Score:
        names = self._input_names
        if len(inputs) > len(names):
            raise TypeError(f"{self.name}() takes {', '.join(names)}, all else by name")
        given = dict(zip(names, inputs, strict=False))
        if twice := given.keys() & options.keys():
            raise TypeError(f"{self.name}() got {', '.join(sorted(twice))} twice")
        public = self._public_signature().parameters
        for name in options.keys() & {"codes", "factors", "test", "seed", "bootstrap"}:
            if name not in public:
                raise unknown_name(f"parameter of {self.name}", name, public)
        given |= options
        if names[0] not in given:
            raise TypeError(f"{self.name}() needs {names[0]}")
        return self.score(given.pop(names[0]), **given)

    def __repr__(self) -> str:
        parameters = [p.replace(annotation=p.empty) for p in self._public_signature().parameters.values()]
        return f"<metric {self.name}{inspect.Signature(parameters)}>"

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # type: ignore[attr-defined]  # pickled by name, as functions are

    @property
    def parameters(self) -> dict[str, Any]:
        """The metric's parameters and their defaults."""
        return {p.name: p.default for p in self._function_parameters()}

    @property
    def uses_factors(self) -> bool:
        """Whether it needs to know the factors."""
        return self.factors != "none"

    @property
    def continuous(self) -> bool:
        """Whether factors are numbers to it, so that they need not be whole."""
        return self.factors == "any"

    @property
    def of_posterior(self) -> bool:
        """Whether its value belongs to the posterior or the model: one value, not one for mean and sampled codes."""
        return self.takes in ("posterior", "method") or bool(self.sampled_parts)

    @property
    def takes_log_variance(self) -> bool:
        """Whether it uses the log-variance of q(z|x), if there is one."""
        return self.takes == "posterior" or "log_variance" in self.parameters

    def suits(self, sizes: Sequence[int | None]) -> bool:
        """Whether it can be computed for factors with these numbers of values, None for a continuous factor.

        Examples
        --------
        >>> uw.metrics.mig.suits([3, 4]), uw.metrics.mig.suits([3, None]), uw.metrics.mcc.suits([3, None])
        (True, False, True)
        """
        if self.factors == "none" or not sizes:
            return self.factors == "none"
        if self.factors == "any":
            return True
        values = [size for size in sizes if size is not None]
        if len(values) < len(sizes):
            return False
        if self.factors == "two":
            return sum(size > 1 for size in values) > 1
        return self.factors == "discrete" or max(values) <= 2

    def settings(self, protocol: str) -> dict[str, Any]:
        """The parameters that a protocol sets."""
        if protocol not in PROTOCOLS:
            raise unknown_name("protocol", protocol, PROTOCOLS)
        return dict(self.protocols.get(protocol, {}))

    def scalars(self, score: Score, factor_names: Sequence[str] = ()) -> dict[str, float]:
        """The single numbers in a score's details, by name: what a results table keeps next to its value.

        Examples
        --------
        >>> codes = np.random.default_rng(0).normal(size=(30, 2))
        >>> uw.metrics.wasserstein_correlation.scalars(uw.metrics.wasserstein_correlation(codes)).keys()
        dict_keys(['distance', 'normalised'])
        """
        numbers = {
            name: float(value)
            for name, value in score.details.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return numbers | dict(self.rows(score, factor_names) if self.rows is not None else {})

    def check_params(self, params: Params) -> dict[str, Any]:
        """The values of parameters as they are declared, under their present names.

        A parameter that the metric does not have, or a value that is not allowed, is an ArgumentError.
        """
        known = [name for name in self.parameters if name != "seed"]
        more = ["log_variance"] if self.takes == "posterior" else []
        annotations = declared(self.function) if params else {}
        checked = {}
        for given, value in params.items():
            name = self.renamed.get(given, given)
            if name != given:
                warnings.warn(
                    f"{self.name}: the parameter {given} is now called {name}", FutureWarning, stacklevel=2
                )
            if name not in known and name not in more:
                raise unknown_name(f"parameter of {self.name}", given, known)
            checked[name] = check_value(name, value, annotations.get(name, Any))
        return checked

    def compute(self, *inputs: Any, seed: int = 0, **params: Any) -> Score:
        """The score of what the function takes: samples, interventions or a posterior that are checked already.

        Examples
        --------
        >>> codes = np.linspace(0, 1, 8)[:, None]
        >>> uw.metrics.mig.compute(uw.metrics.Sample(codes, (8 * codes).astype(int)), num_bins=8)
        mig = 1
        """
        checked = self.check_params(params)
        if "seed" in self.parameters:
            checked["seed"] = check_value("seed", seed, Seed)
        result = self.function(*inputs, **checked)
        if not isinstance(result, Score):
            result = Score(self._number(result), {}, self.parameters | checked)
        shown = tuple(self.parts) if self.show_parts else ()
        return replace(result, metric=self.name, higher_is_better=self.higher_is_better, shown=shown)

    def score(
        self,
        codes: Any,
        factors: ArrayLike | None = None,
        test: tuple[ArrayLike, ArrayLike] | None = None,
        seed: int = 0,
        *,
        protocol: Protocol = "paper",
        bootstrap: int = 0,
        **params: Any,
    ) -> Score:
        """The score of arrays, validated: see :func:`unweave.metrics.score`, which takes the metric's name."""
        params = self.check_params(self.settings(protocol) | to_python(params))
        seed, bootstrap = check_value("seed", seed, Seed), check_bootstrap(bootstrap)
        if self.takes == "method":
            raise ArgumentError("metric", self.name, "needs a trained method: uw.evaluate computes it")
        if self.takes == "models":
            if bootstrap:
                raise ArgumentError(
                    "bootstrap", bootstrap, f"{self.name} is not a score of rows that can be resampled"
                )
            return self.compute(codes, seed=seed, **params)
        if self.takes == "posterior":
            mean, log_variance = _check_posterior(self.name, codes, params.pop("log_variance", None))
            return self.on_posterior(mean, log_variance, seed=seed, params=params, bootstrap=bootstrap)
        if factors is None:
            if self.uses_factors:
                raise ArgumentError("factors", None, f"{self.name} needs the factors of the codes")
            factors = np.zeros(as_array(codes, "codes").shape[:1], dtype=np.int64)
        judged: Sample | None = None
        if test is None:
            train = check_sample(codes, factors, continuous=self.continuous)
            if self.takes == "split" and not self.in_sample:
                train, judged = split_sample(train, seed)
        else:
            if not isinstance(test, tuple | list) or len(test) != 2:
                raise ArgumentError("test", type(test).__name__, "needs a pair (codes, factors)")
            train, judged = check_samples((codes, factors), (test[0], test[1]), self.continuous)
        return self.on_samples(train, judged, seed=seed, params=params, bootstrap=bootstrap)

    def on_samples(
        self,
        train: Sample,
        test: Sample | None = None,
        *,
        seed: int = 0,
        params: Params | None = None,
        bootstrap: int = 0,
    ) -> Score:
        """The score of a sample, or of one to learn from and one to judge on.

        A metric that intervenes draws from the rows of the sample. Intervals are from random halves of the rows.
        """
        given = dict(params or {})

        def compute(train: Sample, test: Sample | None, params: Params) -> Score:
            return self.compute(*self._inputs(train, test), seed=seed, **params)

        def again(rng: np.random.Generator) -> Score:
            rows = random_half(len(train.codes), rng)
            judged = None if test is None else test.rows(random_half(len(test.codes), rng))
            noise = given.get("log_variance")  # it has a row for each point
            some = given if noise is None else {**given, "log_variance": np.asarray(noise)[rows]}
            return compute(train.rows(rows), judged, some)

        return with_interval(compute(train, test, given), again, bootstrap, seed)

    def on_posterior(
        self,
        mean: FloatArray,
        log_variance: FloatArray,
        *,
        seed: int = 0,
        params: Params | None = None,
        bootstrap: int = 0,
    ) -> Score:
        """The score of mean and log-variance (n, D) of q(z|x); intervals are from random halves of the rows."""

        def again(rng: np.random.Generator) -> Score:
            rows = random_half(len(mean), rng)
            return self.compute(mean[rows], log_variance[rows], seed=seed, **(params or {}))

        score = self.compute(mean, log_variance, seed=seed, **(params or {}))
        return with_interval(score, again, bootstrap, seed)

    def on_interventions(
        self, source: Any, *, seed: int = 0, params: Params | None = None, bootstrap: int = 0
    ) -> Score:
        """The score of a representation that gives the codes of chosen factors; intervals are from other draws."""

        def again(rng: np.random.Generator) -> Score:
            return self.compute(source, seed=int(rng.integers(2**32)), **(params or {}))

        return with_interval(self.compute(source, seed=seed, **(params or {})), again, bootstrap, seed)

    def _inputs(self, train: Sample, test: Sample | None) -> list[Any]:
        """What the function is called with, of samples."""
        if self.takes == "arrays":
            return [train.codes, train.factors] if self.uses_factors else [train.codes]
        if self.takes == "interventions":
            from unweave.metrics.interventions.votes import TableInterventions

            return [TableInterventions(train, test)]
        return [train, test] if self.takes == "split" else [train]

    def _number(self, result: Any) -> float:
        number = to_python(result)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ArgumentError(self.name, type(result).__name__, "a metric has to give a number or a Score")
        return float(number)

    @property
    def _input_names(self) -> tuple[str, ...]:
        """The arguments that a user gives by position."""
        if self.takes == "posterior":
            return ("mean", "log_variance")
        if self.takes == "models":
            return ("codes_list",)
        return ("codes", "factors")

    def _function_parameters(self) -> list[inspect.Parameter]:
        """Those of the function that are not its inputs."""
        parameters = list(inspect.signature(self.function).parameters.values())
        inputs = 2 if self.takes in ("arrays", "split", "posterior") else 1
        inputs -= self.takes == "arrays" and not self.uses_factors
        rest = [p for i, p in enumerate(parameters) if p.kind is p.KEYWORD_ONLY or i >= inputs]
        return [p for p in rest if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def _public_signature(self) -> inspect.Signature:
        """How the metric is called with arrays."""
        shared: dict[str, Any] = {"test": None} if self.takes == "split" else {}
        shared |= {"protocol": "paper"} if self.protocols else {}
        shared |= {} if self.takes == "models" else {"seed": 0, "bootstrap": 0}
        optional = () if self.uses_factors else ("factors",)
        empty = inspect.Parameter.empty
        inputs = [
            inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None if name in optional else empty
            )
            for name in self._input_names
        ]
        parameters = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in self._function_parameters()
            if p.name not in shared
        ]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in shared.items()
        ]
        return inspect.Signature([*inputs, *parameters, *more], return_annotation="Score")

    def _public_doc(self) -> str:
        """The function's docstring, with the parameters that all metrics share."""
        text = inspect.getdoc(self.function) or f"The metric {self.name}."
        head, *sections = re.split(r"^(?=\w+\n-{3,}\n)", text, flags=re.MULTILINE)
        heading = "Parameters\n----------\n"
        special = "".join(
            s.removeprefix(heading).strip("\n") + "\n" for s in sections if s.startswith(heading)
        )
        shared = [name for name in self._public_signature().parameters if name in _SHARED]
        first = "".join(self._describe(name) for name in shared if name in self._input_names)
        last = "".join(self._describe(name) for name in shared if name not in self._input_names)
        rest = "".join(section for section in sections if not section.startswith(heading))
        return f"{head.rstrip()}\n\n{heading}{first}{special}{last}\n{rest}".rstrip() + "\n"

    def _describe(self, name: str) -> str:
        text = _SHARED[name]
        if name == "test" and self.in_sample:
            text = "(codes, factors) of other points to judge on; without it those that it learns from"
        if name == "factors":
            text = {"none": "not used", "any": "(n, K) numbers, or (n,) of a single factor"}.get(
                self.factors, text
            )
        return f"{name}\n    {text}.\n"


_SHARED = {
    "codes": "(n, D) finite numbers, or (n,) of a single code",
    "factors": "(n, K) whole numbers, strings or booleans, or (n,) of a single factor",
    "mean": "(n, D) means of q(z|x)",
    "log_variance": "(n, D) log-variances of q(z|x)",
    "codes_list": "codes (n, D) of the same n images, one array for each of at least two models",
    "test": "(codes, factors) of other points to judge on; without it a third of the rows, drawn by ``seed``",
    "protocol": '"paper", or "dlib" for the settings of disentanglement_lib\'s code',
    "seed": "of everything random",
    "bootstrap": "how many resamplings for a 95 % interval in ``details``; see :func:`unweave.metrics.score`",
}


def _check_posterior(name: str, mean: Any, log_variance: Any) -> tuple[FloatArray, FloatArray]:
    from unweave.metrics.unlabelled.posterior import check_posterior

    if log_variance is None:
        raise ArgumentError("log_variance", None, f"{name} needs the log-variance of q(z|x) next to its mean")
    return check_posterior(mean, log_variance)
