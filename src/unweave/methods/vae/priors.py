"""Priors p(z|u) given labels: parts that are handed to a method, in place of N(0, I)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from unweave.errors import ArgumentError, unknown_name
from unweave.methods.checks import check_positive
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import Pass, Posterior, Terms, frozen
from unweave.methods.vae.label_distribution import LabelDistribution, LabelLayout
from unweave.networks import MLP, GaussianHeads
from unweave.objectives import kl_to_standard_normal, reparameterise, standard_noise

HIDDEN = (1000, 1000, 1000)  # Mita et al., table 3
LEAST_VARIANCE = 0.0025  # of p(u|z): a standard deviation of 5 % of a label's range


class ConditionalPrior(nn.Module):
    """p(z|u) = N(m(u), diag v(u)), learned by the method's own KL (iVAE, Khemakhem et al. 2020).

    Where labels are missing, a bound on log p(x) also needs p(u), of which iVAE has no model. It is fixed: uniform over
    the categories of a one-hot label; for one on a scale the Gaussian with the mean and variance of its values, were
    they equally frequent. Mita et al. leave it out; without it nothing holds back the entropy of a Gaussian q(u|x).
    """

    encoder: nn.Module
    label_mean: Tensor
    label_variance: Tensor

    def attach(self, spec: MethodSpec) -> None:
        """Make the network for the method's labels and codes."""
        layout = layout_of(spec)
        self.encoder = _LabelEncoder(layout.width, spec.latent_size)
        mean, variance = layout.uniform_moments()
        self.register_buffer("label_mean", mean, persistent=False)
        self.register_buffer("label_variance", variance, persistent=False)

    def given(self, u: Tensor) -> Posterior:
        """p(z|u) of labels u (n, d)."""
        return Posterior(*self.encoder(u))

    def prepare(self, made: Pass) -> None:
        """Put p(z|u) of the pass's labels into it."""
        assert made.u is not None
        made.prior = self.given(made.u)

    def forward(self, made: Pass) -> Terms:
        """-E_q(u|x)[log p(u)] of the missing labels; nothing where all are given."""
        if made.prediction is None or made.missing is None:
            return Terms()
        cross_entropy = made.prediction.cross_entropy(self.label_mean, self.label_variance)
        missing = torch.where(made.missing, cross_entropy, 0.0)
        return Terms.of(label_prior=(missing.sum(1).mean(), 1.0))


class LabelVAE(nn.Module):
    """p(z|u) = q(z|u), the encoder of a second VAE, on the labels alone (IDVAE, Mita et al., equation 16).

        log p(u) >= E_q(z|u)[log p(u|z)] - KL(q(z|u) || N(0, I))

    It learns by this bound only: in the method's own KL its weights are held fixed (section 4.1). p(u|z) is a Gaussian
    with diagonal covariance for labels on a scale, categorical for one-hot ones.

    ``label_variance``: of that Gaussian, which the paper does not state. None: each label's own rounding error,
    1 / (12 size^2), so that z has to tell the label's values apart ("sufficient"), but at least 0.0025, 5 % of the
    range: the less it is, the narrower q(z|u), which the main encoder has to meet as a prior. At the rounding error of
    40 values the KL is thousands of nats, and stands in the way of everything else. The authors' code takes the sum
    of squared errors, which is 0.5. As labels in [0, 1] vary by 1/12 or less, q(z|u) then gains nothing from u, and
    falls back to N(0, I).
    """

    encoder: nn.Module
    decoder: nn.Module
    log_variance: Tensor

    def __init__(self, label_variance: float | None = None) -> None:
        super().__init__()
        if label_variance is not None:
            check_positive("label_variance", label_variance)
        self.label_variance = label_variance

    def attach(self, spec: MethodSpec) -> None:
        """Make the networks for the method's labels and codes."""
        self.layout = layout_of(spec)
        width = self.layout.width
        self.encoder = _LabelEncoder(width, spec.latent_size)
        self.decoder = MLP(spec.latent_size, HIDDEN, width, activation="leaky_relu")
        variance = (
            self.layout.rounding().clamp(min=LEAST_VARIANCE)
            if self.label_variance is None
            else torch.tensor(self.label_variance)
        )
        self.register_buffer("log_variance", variance.log().expand(width).clone(), persistent=False)

    def given(self, u: Tensor) -> Posterior:
        """p(z|u) of labels u (n, d). Gradients go on to u, and none to the weights."""
        with frozen(self.encoder):
            return Posterior(*self.encoder(u))

    def prepare(self, made: Pass) -> None:
        """Put q(z|u) into the pass: as its prior, and with gradients to the weights for the second VAE's own loss.

        Where no gradient goes on to u, one forward pass serves both.
        """
        assert made.u is not None
        own = Posterior(*self.encoder(made.u))
        made.label_posterior = own
        made.prior = (
            self.given(made.u)
            if made.u.requires_grad
            else Posterior(own.mean.detach(), own.log_variance.detach())
        )

    def labels(self, z: Tensor) -> LabelDistribution:
        """p(u|z) of codes z (n, D)."""
        return LabelDistribution(self.layout, self.decoder(z), self.log_variance)

    def forward(self, made: Pass) -> Terms:
        """The second VAE's own loss, on the labels of the batch; missing ones are draws from q(u|x)."""
        assert made.u is not None
        assert made.label_posterior is not None
        mean, log_variance = made.label_posterior
        z = reparameterise(mean, log_variance, standard_noise(mean, generator=made.generator))
        likelihood = self.labels(z).log_probability(made.u).sum(1).mean()
        kl = kl_to_standard_normal(mean, log_variance).sum(1).mean()
        return Terms.of(label_reconstruction=(-likelihood, 1.0), label_kl=(kl, 1.0))


PRIORS: dict[str, Callable[..., nn.Module]] = {"conditional": ConditionalPrior, "label_vae": LabelVAE}


def create_prior(given: Mapping[str, Any]) -> nn.Module:
    """A prior by ``{"name": …}`` and its parameters."""
    parameters = dict(given)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name not in PRIORS:
        raise unknown_name("prior", str(name), PRIORS)
    taken = inspect.signature(PRIORS[name]).parameters.values()
    known = ["name", *(one.name for one in taken if one.kind is one.POSITIONAL_OR_KEYWORD)]
    for key in parameters:
        if key not in known:
            raise unknown_name(f"parameter of {name}", str(key), known)
    return PRIORS[name](**parameters)


def layout_of(spec: MethodSpec) -> LabelLayout:
    """Which labels the method of a spec learns from."""
    if spec.labels is None:
        raise ArgumentError("labels", None, f"{spec.name} learns from labels: the spec needs them")
    return LabelLayout.of(spec.labels)


class _LabelEncoder(nn.Module):
    """Three layers of 1000 with leaky ReLU, two heads: u (n, d) to mean and log-variance (n, D)."""

    def __init__(self, width: int, latent_size: int) -> None:
        super().__init__()
        self.features = MLP(width, HIDDEN, None, activation="leaky_relu")
        self.heads = GaussianHeads(HIDDEN[-1], latent_size)

    def forward(self, u: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.heads(self.features(u))
        return mean, log_variance
