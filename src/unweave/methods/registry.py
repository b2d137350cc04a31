"""All methods and terms by name: built in, registered by a user's code, or offered by installed packages.

A user's code adds a method in one of two forms. A function of hyperparameters that returns terms is a VAE with this
objective:

>>> from unweave.methods import KL, register_method
>>> @register_method("half_vae", label="½-VAE", strength="beta")
... def half_vae(beta: float = 0.5):
...     '''reconstruction + beta * KL.'''
...     return [KL(beta)]
>>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
>>> create("half_vae", data, beta=0.25, latent_size=2).spec.hyperparameters
{'beta': 0.25}

and a subclass of :class:`~unweave.methods.method.Method` is any method at all. Both get a label and a colour in
figures without being asked.

>>> describe("half_vae").label
'½-VAE'
>>> METHODS.unregister("half_vae")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar, overload

from unweave.arrays import to_python
from unweave.errors import ArgumentError, show
from unweave.methods.catalogue import (
    LabelNeed,
    MethodInfo,
    builtin_methods,
    builtin_terms,
    first_line,
    method_info,
    spare_style,
)
from unweave.methods.planned_stage import plan_stage
from unweave.methods.spec import MethodSpec, VAESpec
from unweave.parameters import TorchSeed, check_arguments, check_value
from unweave.registry import Registry
from unweave.schedules import resolve

if TYPE_CHECKING:
    from torch import nn

    from unweave.data import Dataset
    from unweave.data.supervision.labels import Labels
    from unweave.methods.method import Method
    from unweave.methods.vae.terms import Term

Factory = TypeVar("Factory", bound=Callable[..., Any])


def _from_entry_point(name: str, loaded: object) -> MethodInfo:
    """The facts of a function or class that an installed package offers as a method."""
    if not callable(loaded):
        raise ArgumentError(
            "entry point", loaded, "needs a function that returns terms, or a class of Method"
        )
    return method_info(name, loaded, is_vae=not _is_method_class(name, loaded))


METHODS: Registry[MethodInfo] = Registry("method", "unweave.methods", builtin_methods, _from_entry_point)
TERMS: Registry[Callable[..., Any]] = Registry(
    "term", "unweave.terms", lambda: {name: term.path for name, term in builtin_terms().items()}
)


def names() -> list[str]:
    """The names of all methods, as :func:`create` takes them.

    Examples
    --------
    >>> names()[:3]
    ['vae', 'beta_vae', 'factor_vae']
    """
    return list(METHODS)


def describe(name: str) -> MethodInfo:
    """What is known of a method: its label for people, hyperparameters, paper, strength and colour.

    Examples
    --------
    >>> describe("beta_tcvae").label, describe("beta_tcvae").strength
    ('β-TCVAE', 'beta')
    """
    info = METHODS[name]
    if not isinstance(info, MethodInfo):
        message = "its entry point gives something that @register_method did not decorate"
        raise ArgumentError("method", name, message)
    return info


def method_label(name: str) -> str:
    """A method's name for people, as the papers write it; of one that is not known here, its name with spaces.

    Examples
    --------
    >>> method_label("beta_tcvae"), method_label("of_another_package")
    ('β-TCVAE', 'of another package')
    """
    return describe(name).label if name in METHODS else name.replace("_", " ")


def hyperparameters(name: str) -> dict[str, Any]:
    """A method's hyperparameters and their defaults.

    Examples
    --------
    >>> hyperparameters("annealed_vae")
    {'c_max': 25.0, 'gamma': 1000.0, 'steps': 100000}
    """
    return dict(describe(name).hyperparameters)


def style(name: str) -> tuple[str, str]:
    """The colour and marker of a method in figures; of an unknown one, those that its name decides.

    Examples
    --------
    >>> style("beta_vae")
    ('#0072B2', 'o')
    """
    if name not in METHODS:
        return spare_style(name)
    info = describe(name)
    return info.color, info.marker


@overload
def register_method(name: Factory) -> Factory: ...
@overload
def register_method(
    name: str,
    *,
    label: str | None = None,
    paper: str = "",
    strength: str | None = None,
    strength_label: str | None = None,
    color: str | None = None,
    marker: str | None = None,
    order: int = 1_000,
    labels: LabelNeed | None = None,
) -> Callable[[Factory], Factory]: ...
def register_method(
    name: Any,
    *,
    label: str | None = None,
    paper: str = "",
    strength: str | None = None,
    strength_label: str | None = None,
    color: str | None = None,
    marker: str | None = None,
    order: int = 1_000,
    labels: LabelNeed | None = None,
) -> Any:
    """Make a method known by name: to ``create``, studies, figures and the command line.

    It decorates a function of hyperparameters that returns terms or a
    :class:`~unweave.methods.vae.composition.Composition`, which is then a VAE; or a subclass of
    :class:`~unweave.methods.method.Method` whose constructor takes ``image_shape`` and hyperparameters by name. Each
    hyperparameter has a default, and an annotation of :mod:`unweave.parameters` says what it may be; one that is an
    earlier stage has the annotation ``unweave.methods.Stage``.

    Parameters
    ----------
    name
        letters, digits and _. ``@register_method`` without brackets takes the name of the function or class.
    label
        the name in figures and reports; by default ``name`` with spaces.
    paper
        where the method is from.
    strength
        the hyperparameter by which the method is varied; by default the first one.
    strength_label
        the strength in figures; by default its name.
    color, marker
        in figures, as matplotlib takes them; by default a pair that the name decides.
    order
        the position in lists and legends.
    labels
        whether it learns from labels ("none", "some", "all": those of every row). By default the parts of a VAE say so;
        a class does, from "all", if its constructor takes ``labels``, a
        :class:`~unweave.methods.label_layout.LabelLayout`.

    Examples
    --------
    >>> from unweave.methods import KL
    >>> @register_method("weak_vae", label="Weak-VAE")
    ... def weak_vae(beta: float = 0.1):
    ...     '''reconstruction + beta * KL.'''
    ...     return [KL(beta)]
    >>> describe("weak_vae").summary
    'reconstruction + beta * KL.'
    >>> METHODS.unregister("weak_vae")
    """
    if callable(name):
        return register_method(name.__name__)(name)
    _check_name("method", name)

    def register(factory: Factory) -> Factory:
        info = method_info(
            name,
            factory,
            is_vae=not _is_method_class(name, factory),
            label=label,
            paper=paper,
            strength=strength,
            strength_label=strength_label,
            color=color,
            marker=marker,
            order=order,
            labels=labels,
        )
        ours = builtin_methods().get(name)
        METHODS.register(name, info, source=factory, builtin=ours is not None and ours.path == info.path)
        return factory

    return register


@overload
def register_term(name: Factory) -> Factory: ...
@overload
def register_term(name: str) -> Callable[[Factory], Factory]: ...
def register_term(name: Any) -> Any:
    """Make a term known by name, so that run specs, studies and the command line can use it.

    ``@register_term`` without brackets takes the name of the function or class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from unweave.methods import Term, Terms
    >>> @register_term("sparsity")
    ... @dataclass(frozen=True)
    ... class Sparsity(Term):
    ...     '''weight * mean absolute code.'''
    ...     weight: float = 1.0
    ...     def __call__(self, forward_pass):
    ...         return Terms.of(sparsity=(forward_pass.mean.abs().sum(1).mean(), self.weight))
    >>> create_term("sparsity", weight=2.0)
    Sparsity(weight=2.0)
    >>> TERMS.unregister("sparsity")
    """
    if callable(name):
        return register_term(name.__name__)(name)
    _check_name("term", name)

    def register(factory: Factory) -> Factory:
        ours = builtin_terms().get(name)
        path = f"{factory.__module__}:{factory.__qualname__}"
        TERMS.register(name, factory, source=factory, builtin=ours is not None and ours.path == path)
        return factory

    return register


def create_term(name: str, **parameters: Any) -> Term[Any]:
    """A registered term by name.

    Examples
    --------
    >>> create_term("kl", weight=4.0)
    KL(weight=4.0)
    """
    from unweave.methods.vae.terms import as_term

    factory = TERMS[name]
    check_arguments(factory, parameters, f"parameter of {name}")
    return as_term(factory(**parameters))


def term_summaries() -> dict[str, str]:
    """The first line of the docstring of every term, by name; of built-in ones without importing them.

    Examples
    --------
    >>> term_summaries()["kl"]
    'weight * KL(q(z|x) || p(z)), batch mean, in nats.'
    """
    known = builtin_terms()
    return {name: known[name].summary if name in known else _summary(TERMS[name]) for name in TERMS}


def _summary(term: Callable[..., Any]) -> str:
    """The first line of a term's docstring; what ``dataclass`` writes where there is none says nothing."""
    line = first_line(term.__doc__)
    return "" if line.startswith(f"{getattr(term, '__name__', '')}(") else line


def create(name: str, data: Dataset, *, seed: TorchSeed | None = None, **settings: Any) -> Method:
    """A method, ready to train on ``data``.

    Parameters
    ----------
    name
        one of :func:`names`.
    data
        decides the shape of images, and for some methods the labels.
    seed
        of the initial weights. None: ``train`` draws them from its own seed.
    **settings
        the method's hyperparameters (an earlier stage is given as its run, the run's folder, or a mapping of settings,
        {"method": "beta_tcvae", "beta": 4, "steps": 1000}, with which ``train`` trains it first); ``labels`` for a
        method that learns from them; for a VAE also ``latent_size``, ``architecture``, ``reconstruction``,
        ``correlation``, ``correlated``, ``capacity``, ``extra_terms``, ``prior``, ``encoder`` and ``decoder``: see
        :func:`unweave.methods.vae.create.create_vae`.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 64, 64, 1), np.uint8))
    >>> method = uw.methods.create("beta_tcvae", data, beta=6, latent_size=5)
    >>> method.spec.hyperparameters
    {'beta': 6}
    """
    from unweave.methods.method import LearnsFromLabels, check_dataset

    info, seed = describe(name), check_value("seed", seed, TorchSeed | None)
    check_dataset(data)
    if info.is_vae:
        from unweave.methods.vae.create import create_vae

        method: Method = create_vae(name, data, **settings)
    else:
        chosen = _choose_labels(info, data, settings.pop("labels", None))
        given = to_python(settings)
        info.check(given)
        stages, planned = {}, {}
        for key in info.stages:
            if isinstance(given.get(key), Mapping):
                planned[key] = plan_stage(key, given[key], data)
                given[key], stages[key] = planned[key].spec, planned[key].method
            elif given.get(key) is not None:
                given[key], stages[key] = _read_stage(key, given[key])
        size = len(data) if data.finite else None
        labels = None if chosen is None else chosen.spec
        method = build(MethodSpec(name, list(data.image_shape), size, given, labels=labels), stages=stages)
        method.planned = planned
        if chosen is not None:
            if not isinstance(method, LearnsFromLabels):
                raise ArgumentError("method", name, "takes labels, and needs to be a LearnsFromLabels")
            method.take_labels(chosen)
        method.batches(data)  # refuses data that the method cannot learn from
    if seed is not None:
        method.initialise(seed)
        method.fresh = False
    return method


def build(
    spec: MethodSpec,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    terms: Sequence[Any] = (),
    stages: Mapping[str, Method] | None = None,
) -> Method:
    """Put a method together from its spec.

    Parameters
    ----------
    spec
        of a method that is known by name.
    encoder, decoder
        the user's own networks, for a spec that was created with them.
    terms
        ready objects for those of the spec's extra terms that are not registered.
    stages
        trained methods for the spec's earlier stages; others are put together too, for weights to be loaded.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> method = create("beta_vae", data, latent_size=2)
    >>> build(method.spec).load_state_dict(method.state_dict())
    <All keys matched successfully>
    """
    info = describe(spec.name)
    if info.is_vae:
        from unweave.methods.vae.create import build_vae

        if not isinstance(spec, VAESpec):
            spec = VAESpec(**spec.as_dict())
        return build_vae(spec, encoder=encoder, decoder=decoder, terms=terms)
    for argument, given in (("encoder", encoder), ("decoder", decoder), ("terms", terms or None)):
        if given is not None:
            raise ArgumentError(argument, type(given).__name__, f"{spec.name} takes none: it is not a VAE")
    if isinstance(spec, VAESpec):
        raise ArgumentError("method spec", spec.name, "is the spec of a VAE, and the method is none")
    settings, ready = info.check(spec.hyperparameters), stages or {}
    if info.labels != "none":
        from unweave.methods.label_layout import LabelLayout

        settings["labels"] = LabelLayout.from_spec(spec)
    elif spec.labels is not None:
        raise ArgumentError("method spec", spec.name, "has labels, and the method learns from none")
    for key, stage in _stage_specs(spec).items():
        settings[key] = ready[key] if key in ready else build(stage)
    kind: Any = info.load()
    method: Method = kind.kind_for(settings)(image_shape=tuple(spec.image_shape), **settings)
    method.spec = spec
    return method


def extensions_of(spec: MethodSpec) -> list[str]:
    """The user's modules and files that registered a spec's method and terms, as :mod:`unweave.extensions` names them.

    Examples
    --------
    >>> extensions_of(MethodSpec("beta_vae", [64, 64, 1]))  # built in
    []
    """
    origins = [registry.origin(name) for registry, name in _registered(spec)]
    return list(dict.fromkeys(origin for origin in origins if origin is not None))


def unknown_names(spec: MethodSpec) -> list[str]:
    """The method and terms of a spec that nobody has registered in this process, in words.

    Examples
    --------
    >>> unknown_names(MethodSpec("my_gan", [64, 64, 1]))
    ["the method 'my_gan'"]
    """
    return [
        f"the {registry.kind} {show(name)}"
        for registry, name in _registered(spec)
        if not registry.is_loaded(name)
    ]


def _registered(spec: MethodSpec) -> list[tuple[Registry[Any], str]]:
    """What a spec and its stages name, and where; terms that were never registered have the name "module:Class"."""
    terms = [entry["name"] for entry in spec.extra_terms] if isinstance(spec, VAESpec) else []
    stages = _stage_specs(spec).values() if METHODS.is_loaded(spec.name) else ()
    return [
        (METHODS, spec.name),
        *((TERMS, name) for name in terms if ":" not in name),
        *(entry for stage in stages for entry in _registered(stage)),
    ]


def _stage_specs(spec: MethodSpec) -> dict[str, MethodSpec]:
    """The specs of a method's earlier stages, by hyperparameter; checked, as they may come from a file."""
    stages = {}
    for key in describe(spec.name).stages:
        given = spec.hyperparameters.get(key)
        if given is not None:
            if not isinstance(given, Mapping) or "method" not in given:
                raise ArgumentError(key, given, "needs the spec of a run, with its method")
            stages[key] = MethodSpec.from_dict(given["method"])
            stages[key].check()
    return stages


def _choose_labels(info: MethodInfo, data: Dataset, given: Any) -> Labels | None:
    """The labels for a method that is no VAE, by what the user says of them; None if it learns from none."""
    from unweave.data.supervision.labels import choose_labels

    if info.labels == "none":
        if given is not None:
            raise ArgumentError("labels", type(given).__name__, f"{info.name} does not learn from labels")
        return None
    labels = choose_labels(data, given)
    if info.labels == "all" and labels.spec.get("partial"):
        raise ArgumentError("labels", "some rows have none", f"{info.name} needs the labels of every row")
    return labels


def _read_stage(name: str, given: Any) -> tuple[dict[str, Any], Method]:
    """What a user gave for an earlier stage: its spec, and its method as trained.

    Runs are of a room above this one, which is named here and imported only when there is a stage to read.
    """
    stage: tuple[dict[str, Any], Method] = resolve_name("unweave.training.stage:read_stage")(name, given)
    return stage


def label_need(
    name: str,
    prior: str | Mapping[str, Any] | None = None,
    extra_terms: Sequence[Any] = (),
    **hyperparameters: Any,
) -> LabelNeed:
    """Whether a method learns from labels ("none": it does not), and if so, whether it needs those of every row.

    Wrong hyperparameters are refused. Of built-in methods and terms this imports nothing.

    Examples
    --------
    >>> label_need("beta_vae"), label_need("ss_ivae"), label_need("beta_vae", prior="conditional")
    ('none', 'some', 'all')
    """
    info = describe(name)
    info.check(resolve(to_python(hyperparameters)) if info.is_vae else to_python(hyperparameters))
    known = builtin_terms()
    declared = [
        known[term["name"]] for term in extra_terms if isinstance(term, Mapping) and term.get("name") in known
    ]
    if not info.is_vae:
        return info.labels or "none"
    if info.labels is None or prior is not None or len(declared) < len(extra_terms):
        from unweave.methods.vae.create import compose

        return compose(name, hyperparameters, prior, extra_terms).label_need
    for term in declared:
        TERMS.check(term.name)
    needs = any(term.needs_labels for term in declared)
    return "some" if info.labels == "none" and needs else info.labels


def _check_name(kind: str, name: object) -> None:
    """Refuse a name when the decorator is called: one that is never applied would say nothing."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError("name", name, f"the name of a {kind} needs letters, digits and _")


def _is_method_class(name: str, factory: Callable[..., Any]) -> bool:
    """Whether a factory is a class of methods; a class of anything else is refused."""
    if not inspect.isclass(factory):
        return False
    from unweave.methods.method import Method

    if not issubclass(factory, Method):
        raise ArgumentError("method", name, "needs a function that returns terms, or a subclass of Method")
    if "image_shape" not in inspect.signature(factory).parameters:
        raise ArgumentError("method", name, "its constructor needs the argument image_shape")
    return True
