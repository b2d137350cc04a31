"""A VAE put together: for a data set, or from a spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from torch import nn

from unweave.arrays import to_python
from unweave.data import Dataset
from unweave.data.supervision.labels import LabelChoice, choose_labels
from unweave.errors import ArgumentError
from unweave.methods.label_layout import LabelLayout
from unweave.methods.registry import TERMS, create_term, describe
from unweave.methods.spec import VAESpec
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.conditional_prior import PRIORS, create_prior
from unweave.methods.vae.conditional_vae import ConditionalVAE
from unweave.methods.vae.kl import KL
from unweave.methods.vae.likelihoods import create_likelihood
from unweave.methods.vae.scheduled_terms import ScheduledTerms, schedules
from unweave.methods.vae.terms import Term, as_term, describe_term
from unweave.methods.vae.vae import VAE, Networks
from unweave.networks import create_networks
from unweave.networks.create import Architecture
from unweave.parameters import CodeSize, Correlation, check_value
from unweave.schedules import resolve

Extra = Term[Any] | Mapping[str, Any]
Correlated = Literal["posterior", "noise"]


def create_vae(
    name: str,
    data: Dataset,
    *,
    latent_size: int = 10,
    architecture: Architecture = "auto",
    reconstruction: str = "bernoulli",
    correlation: float = 0.0,
    correlated: Correlated = "posterior",
    capacity: Mapping[str, float] | None = None,
    extra_terms: Sequence[Extra] = (),
    prior: str | Mapping[str, Any] | None = None,
    labels: LabelChoice | None = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    **hyperparameters: Any,
) -> VAE:
    """A VAE with the objective of the method ``name``, for the images of ``data``.

    Parameters
    ----------
    name
        of a method that is a VAE.
    data
        decides the shape of images, and the labels.
    latent_size
        D, the number of code dimensions.
    architecture
        "conv" (the papers' network), "conv_dlib" (disentanglement_lib's), "adain", "mlp"; "auto": conv for images; or a
        mapping with options, {"name": "conv", "width": 2}: see :mod:`unweave.networks.create`.
    reconstruction
        "bernoulli", "gaussian", "gaussian_learned", "laplace", "mse".
    correlation
        s of the correlated posterior of Yang et al.: noise covariance (1-s) I + s 11^T.
    correlated
        what knows of it: "posterior", every term, with the exact density of q(z|x); "noise", the draws of z alone,
        while every term of the objective stays as it was, as in their experiments (beta-TCVAE and DIP-VAE-II differ).
    capacity
        replaces the method's KL term by a capacity schedule: {"c_max": 25, "gamma": 1000, "steps": 100000}.
    extra_terms
        further terms: objects, or mappings {"name": "dip_ii", "lambda_od": 5, …} of registered ones.
    prior
        p(z|u) instead of N(0, I): "conditional" (iVAE's) or "label_vae" (IDVAE's), or a mapping with its
        parameters, {"name": "label_vae", "label_variance": 0.01, "hidden_size": 50}. The encoder then takes labels as
        well. A method with a prior of its own takes parameters of that kind.
    labels
        what a method that learns from labels gets: names of factors; or the user's own array by row, NaN where
        unknown; or a mapping of the arguments of :func:`unweave.data.supervision.labels.labels_of`, {"names":
        ["shape"], "encoding": "one_hot", "labelled": 0.1}. None: all factors, scaled to [0, 1].
    encoder, decoder
        the user's own modules: images -> (mean, log_variance), and z -> output shaped as the images. With a prior
        given labels, the encoder is called as encoder(images, u).
    **hyperparameters
        of the method. A number of a term may change during training: beta={"start": 0, "end": 6, "steps": 5000}, the
        arguments of :class:`unweave.schedules.Schedule`; so may one in ``capacity`` and ``extra_terms``.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> create_vae("dip_vae_ii", data, lambda_od=5, latent_size=2, correlation=0.5).noise_correlation
    0.5
    """
    hyperparameters, prior, capacity = to_python(hyperparameters), to_python(prior), to_python(capacity)
    latent_size, correlation = to_python((latent_size, correlation))
    terms = [term if isinstance(term, Mapping) else as_term(term) for term in extra_terms]
    need = compose(name, hyperparameters, prior, terms).label_need
    if need == "none" and labels is not None:
        message = f"{name} does not learn from labels; full_vae, ivae, idvae and any method with a prior=… do"
        raise ArgumentError("labels", _without_arrays(labels), message)
    chosen = None if need == "none" else choose_labels(data, labels)
    spec = VAESpec(
        name=name,
        hyperparameters=dict(hyperparameters),
        latent_size=latent_size,
        architecture="custom" if encoder is not None or decoder is not None else _plain(architecture),
        reconstruction=reconstruction,
        correlation=correlation,
        correlated=None if check_value("correlated", correlated, Correlated) == "posterior" else correlated,
        capacity=None if capacity is None else dict(capacity),
        extra_terms=[_described(term) for term in terms],
        image_shape=list(data.image_shape),
        dataset_size=len(data) if data.finite else None,
        prior=_named(prior),
        labels=None if chosen is None else chosen.spec,
    )
    ready = [term for term in terms if isinstance(term, Term)]
    method = build_vae(spec, encoder=encoder, decoder=decoder, terms=ready)
    if chosen is not None:
        method.take_labels(chosen)
    if method.supervision.pairing is not None:
        method.batches(data)  # refuses data without such pairs
    return method


def build_vae(
    spec: VAESpec,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    terms: Sequence[Any] = (),
) -> VAE:
    """Put a VAE together from its spec; ``terms`` are ready objects for the spec's extra terms.

    Examples
    --------
    >>> from unweave.methods.spec import VAESpec
    >>> build_vae(VAESpec("beta_vae", [6], latent_size=2)).spec.name
    'beta_vae'
    """
    check_value("latent_size", spec.latent_size, CodeSize)
    check_value("correlation", spec.correlation, Correlation)
    ready = {describe_term(term)["name"]: term for term in map(as_term, terms)}
    parts = _parts(spec, ready)
    _check_labels(spec, parts)
    likelihood = create_likelihood(spec.reconstruction, of_images=len(spec.image_shape) == 3)
    conditioning = 0 if parts.prior is None else LabelLayout.from_spec(spec).width
    shape, given = tuple(spec.image_shape), [network for network in (encoder, decoder) if network is not None]
    created = create_networks(spec.architecture, shape, spec.latent_size, encoder, decoder, conditioning)
    kind = VAE if parts.prior is None else ConditionalVAE
    method = kind(Networks(*created, likelihood, given), parts, spec)
    if schedules(spec):
        method.scheduled = ScheduledTerms(spec, method.terms, lambda now: _parts(now, ready).terms)
    return method


def _parts(spec: VAESpec, ready: Mapping[str, Term[Any]]) -> Composition:
    """The composition of a spec; ``ready`` are terms that are there already, by name."""
    extra = [ready.get(entry["name"]) or create_term(**resolve(entry)) for entry in spec.extra_terms]
    parts = compose(spec.name, spec.hyperparameters, spec.prior)
    if spec.capacity is not None:
        capacity = create_term("kl_capacity", **resolve(spec.capacity))
        parts = replace(parts, terms=[capacity if isinstance(term, KL) else term for term in parts.terms])
    return parts.extended(extra)


def compose(
    name: str,
    hyperparameters: Mapping[str, Any],
    prior: str | Mapping[str, Any] | None = None,
    extra_terms: Sequence[Extra] = (),
) -> Composition:
    """The parts of a method, with the prior and the further terms that it is given; schedules have their last values.

    Examples
    --------
    >>> compose("beta_vae", {"beta": 6}).terms
    [KL(weight=6.0)]
    """
    info = describe(name)
    checked = info.check(resolve(to_python(dict(hyperparameters))))
    parts = _as_composition(name, info.load()(**checked))
    extra = [
        create_term(**resolve(_described(term))) if isinstance(term, Mapping) else as_term(term)
        for term in extra_terms
    ]
    given = _named(prior)
    if given is None:
        return parts.extended(extra)
    if parts.prior is not None:
        if PRIORS.get(given.get("name", "")) is not type(parts.prior):
            raise ArgumentError("prior", dict(given), f"{name} has a prior of its own, of another kind")
        given = {**parts.prior.settings(), **given}
    return replace(parts, prior=create_prior(given)).extended(extra)


def _as_composition(name: str, result: object) -> Composition:
    """What the function of a method returned: a composition, or terms, which become one."""
    if isinstance(result, Composition):
        return result
    message = "its function needs to return a list of terms, or a Composition; it returned"
    if isinstance(result, Term) or not isinstance(result, Iterable):
        raise ArgumentError("method", name, f"{message} {result!r}")
    terms = list(result)
    try:
        return Composition([as_term(term) for term in terms])
    except ArgumentError as error:
        raise ArgumentError("method", name, f"{message} {terms!r}") from error


def _named(prior: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A prior as a mapping with a name."""
    if not isinstance(prior, str | Mapping | None):
        raise ArgumentError("prior", prior, f"needs a name ({', '.join(PRIORS)}), or a mapping with one")
    return {"name": prior} if isinstance(prior, str) else None if prior is None else dict(prior)


def _plain(architecture: Architecture) -> str | dict[str, Any]:
    """An architecture as it is written in a spec."""
    plain: str | dict[str, Any] = to_python(architecture)
    return plain


def _described(term: Extra) -> dict[str, Any]:
    """A further term as a mapping, for the spec."""
    if isinstance(term, Term):
        return describe_term(term)
    if "name" not in term:
        raise ArgumentError("extra_terms", dict(term), f"needs a 'name', one of {sorted(TERMS)}")
    return dict(to_python(term))


def _check_labels(spec: VAESpec, parts: Composition) -> None:
    """Refuse missing labels where the method cannot do without, and parts that do not go together."""
    if parts.prior is not None and any(term.needs_labels for term in parts.terms):
        raise ArgumentError(
            "label_match", spec.name, "codes are matched to labels: the encoder must not see them"
        )
    if parts.label_need == "all" and (spec.labels or {}).get("partial"):
        hint = f"; {parts.semi_supervised} learns from those of some" if parts.semi_supervised else ""
        message = f"{spec.name} needs the labels of every row{hint}"
        raise ArgumentError("labels", "some rows have none", message)


def _without_arrays(value: object) -> object:
    """What a user gave as labels, with types instead of arrays."""
    if isinstance(value, Mapping):
        return {key: _without_arrays(entry) for key, entry in value.items()}
    return value if isinstance(value, str | list | tuple | int | float | None) else type(value).__name__
