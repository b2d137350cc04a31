"""All methods by name, and putting one together for a data set."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from torch import nn

from unweave.arrays import to_python
from unweave.data import Dataset
from unweave.errors import ArgumentError, unknown_name
from unweave.methods.checks import check_correlation, check_count
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import TERMS, Term, create_term
from unweave.methods.vae.ada_gvae import ada_gvae, ada_ml_vae
from unweave.methods.vae.annealed_vae import annealed_vae
from unweave.methods.vae.beta_tcvae import beta_tcvae
from unweave.methods.vae.beta_vae import beta_vae
from unweave.methods.vae.composition import Composition, LabelNeed
from unweave.methods.vae.dip_vae import dip_vae_i, dip_vae_ii
from unweave.methods.vae.factor_vae import factor_vae
from unweave.methods.vae.full_vae import full_vae
from unweave.methods.vae.gvae import gvae
from unweave.methods.vae.idvae import idvae, ss_idvae
from unweave.methods.vae.ivae import ivae, ss_ivae
from unweave.methods.vae.kl import KL
from unweave.methods.vae.label_choice import LabelChoice, choose_labels, refuse_labels
from unweave.methods.vae.likelihoods import create_likelihood
from unweave.methods.vae.ml_vae import ml_vae
from unweave.methods.vae.priors import PRIORS, create_prior, layout_of
from unweave.methods.vae.vae import VAE, vae
from unweave.networks import create_networks

METHODS: dict[str, Callable[..., list[Term] | Composition]] = {
    "vae": vae,
    "beta_vae": beta_vae,
    "annealed_vae": annealed_vae,
    "factor_vae": factor_vae,
    "beta_tcvae": beta_tcvae,
    "dip_vae_i": dip_vae_i,
    "dip_vae_ii": dip_vae_ii,
    "full_vae": full_vae,
    "ivae": ivae,
    "idvae": idvae,
    "ss_ivae": ss_ivae,
    "ss_idvae": ss_idvae,
    "gvae": gvae,
    "ml_vae": ml_vae,
    "ada_gvae": ada_gvae,
    "ada_ml_vae": ada_ml_vae,
}


def names() -> list[str]:
    """The names of all methods, as ``create`` takes them."""
    return list(METHODS)


def hyperparameters(name: str) -> dict[str, Any]:
    """A method's hyperparameters and their defaults."""
    parameters = inspect.signature(_find(name)).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def label_need(
    name: str,
    prior: str | Mapping[str, Any] | None = None,
    extra_terms: Sequence[Term | Mapping[str, Any]] = (),
    **hyperparameters: Any,
) -> LabelNeed:
    """Whether a method learns from labels ("none": it does not), and if so, whether it needs those of every row."""
    further = [
        create_term(**_describe_term(term)) if isinstance(term, Mapping) else term for term in extra_terms
    ]
    return _compose(name, hyperparameters, _named(prior)).extended(further).label_need


def create(
    name: str,
    data: Dataset,
    *,
    latent_size: int = 10,
    architecture: str = "auto",
    reconstruction: str = "bernoulli",
    correlation: float = 0.0,
    capacity: Mapping[str, float] | None = None,
    extra_terms: Sequence[Term | Mapping[str, Any]] = (),
    prior: str | Mapping[str, Any] | None = None,
    labels: LabelChoice | None = None,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    seed: int | None = None,
    **hyperparameters: Any,
) -> VAE:
    """A method, ready to train on ``data``.

    >>> method = create("beta_tcvae", data, beta=6)                    # doctest: +SKIP

    Parameters
    ----------
    latent_size
        D, the number of code dimensions.
    architecture
        "conv" (the papers' network), "conv_dlib" (disentanglement_lib's), "mlp"; "auto": conv for images.
    reconstruction
        "bernoulli", "gaussian", "gaussian_learned", "laplace", "mse".
    correlation
        s of the correlated posterior of Yang et al.: noise covariance (1-s) I + s 11^T.
    capacity
        replaces the method's KL term by a capacity schedule: {"c_max": 25, "gamma": 1000, "steps": 100000}.
    extra_terms
        further terms: objects, or mappings {"name": "dip_ii", "lambda_od": 5, …} of registered ones.
    prior
        p(z|u) in place of N(0, I): "conditional" (iVAE's) or "label_vae" (IDVAE's), or a mapping with its
        parameters, {"name": "label_vae", "label_variance": 0.01}. The encoder then takes labels as well.
    labels
        what a method that learns from labels gets: names of factors; or the user's own array by row, NaN where
        unknown; or a mapping of the arguments of :func:`unweave.data.supervision.labels_of`, {"names": ["shape"],
        "encoding": "one_hot", "labelled": 0.1}. None: all factors, scaled to [0, 1].
    encoder, decoder
        the user's own modules: images -> (mean, log_variance), and z -> output shaped as the images. With a prior
        given labels, the encoder is called as encoder(images, u).
    seed
        of the initial weights. None: ``train`` draws them from its own seed.
    """
    hyperparameters, prior, capacity = to_python(hyperparameters), to_python(prior), to_python(capacity)
    latent_size, correlation, seed = to_python((latent_size, correlation, seed))
    need = label_need(name, prior, extra_terms, **hyperparameters)
    if need == "none" and labels is not None:
        raise refuse_labels(name, labels)
    chosen = None if need == "none" else choose_labels(data, labels)
    spec = MethodSpec(
        name=name,
        hyperparameters=dict(hyperparameters),
        latent_size=latent_size,
        architecture="custom" if encoder is not None or decoder is not None else architecture,
        reconstruction=reconstruction,
        correlation=correlation,
        capacity=None if capacity is None else dict(capacity),
        extra_terms=[_describe_term(term) for term in extra_terms],
        image_shape=list(data.image_shape),
        dataset_size=len(data) if data.finite else None,
        prior=_named(prior),
        labels=None if chosen is None else chosen.spec,
    )
    own_terms = [term for term in extra_terms if not isinstance(term, Mapping)]
    method = build(spec, encoder=encoder, decoder=decoder, terms=own_terms)
    method.pairs_for(data)
    if chosen is not None:
        method.take_labels(chosen)
    if seed is not None:
        method.initialise(seed)
        method.fresh = False
    return method


def build(
    spec: MethodSpec,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    terms: Sequence[Term] = (),
) -> VAE:
    """Put a method together from its spec; ``terms`` are ready-made objects for the spec's extra terms."""
    check_count("latent_size", spec.latent_size)
    check_correlation(spec.correlation)
    ready = {_describe_term(term)["name"]: term for term in terms}
    extra = [ready.get(entry["name"]) or create_term(**entry) for entry in spec.extra_terms]
    parts = _compose(spec.name, spec.hyperparameters, spec.prior)
    if spec.capacity is not None:
        capacity = create_term("kl_capacity", **spec.capacity)
        parts = replace(parts, terms=[capacity if isinstance(term, KL) else term for term in parts.terms])
    parts = parts.extended(extra)
    _check_labels(spec, parts)
    likelihood = create_likelihood(spec.reconstruction)
    shape = tuple(spec.image_shape)
    conditioning = 0 if parts.prior is None else layout_of(spec).width
    networks = create_networks(spec.architecture, shape, spec.latent_size, encoder, decoder, conditioning)
    given = (encoder, decoder)
    return VAE(
        *networks,
        likelihood,
        parts,
        spec=spec,
        own_networks=[made for made, mine in zip(networks, given, strict=True) if mine is None],
    )


def _named(prior: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not isinstance(prior, str | Mapping | None):
        raise ArgumentError("prior", prior, f"needs a name ({', '.join(PRIORS)}), or a mapping with one")
    return {"name": prior} if isinstance(prior, str) else None if prior is None else dict(prior)


def _find(name: str) -> Callable[..., list[Term] | Composition]:
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


def _compose(name: str, given: Mapping[str, Any], prior: Mapping[str, Any] | None) -> Composition:
    """The method's own parts, with the prior that it was handed."""
    method = _find(name)
    known = hyperparameters(name)
    for key in given:
        if key not in known:
            raise unknown_name(f"hyperparameter of {name}", key, known)
    made = method(**given)
    parts = made if isinstance(made, Composition) else Composition(made)
    if prior is None:
        return parts
    if parts.prior is not None:
        raise ArgumentError("prior", dict(prior), f"{name} has a prior of its own")
    return replace(parts, prior=create_prior(prior))


def _check_labels(spec: MethodSpec, parts: Composition) -> None:
    """Refuse missing labels where the method cannot do without, and parts that do not go together."""
    if parts.prior is not None and any(getattr(term, "needs_labels", False) for term in parts.terms):
        raise ArgumentError(
            "label_match", spec.name, "codes are matched to labels: the encoder must not see them"
        )
    if parts.label_need == "all" and (spec.labels or {}).get("partial"):
        hint = f"; ss_{spec.name} learns from those of some" if f"ss_{spec.name}" in METHODS else ""
        raise ArgumentError(
            "labels", "some rows have none", f"{spec.name} needs the labels of every row{hint}"
        )


def _describe_term(term: Term | Mapping[str, Any]) -> dict[str, Any]:
    """A term as a mapping: its registered name and parameters, or the class of one that is not registered."""
    if isinstance(term, Mapping):
        if "name" not in term:
            raise ArgumentError("extra_terms", dict(term), f"needs a 'name', one of {sorted(TERMS)}")
        return dict(to_python(term))
    name = getattr(type(term), "term_name", f"{type(term).__module__}:{type(term).__qualname__}")
    parameters = asdict(term) if is_dataclass(term) and not isinstance(term, type) else {}
    if isinstance(term, nn.Module) and hasattr(term, "weight"):
        parameters["weight"] = term.weight
    return {"name": name, **to_python(parameters)}
