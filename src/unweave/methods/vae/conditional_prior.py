"""Priors p(z|u) given labels: parts that are handed to a method, instead of N(0, I)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unweave.errors import unknown_name
from unweave.methods.label_layout import LabelLayout
from unweave.methods.method import Posterior, Terms
from unweave.methods.spec import VAESpec
from unweave.methods.vae.label_distribution import LabelDistribution
from unweave.methods.vae.terms import ConditionalPass, PredictedPass
from unweave.networks import MLP, GaussianHeads, frozen
from unweave.objectives import kl_to_standard_normal, reparameterise, standard_noise
from unweave.parameters import Count, Positive, check_arguments, check_value, defaults

HIDDEN = (1000, 1000, 1000)  # Mita et al., table 3
LEAST_VARIANCE = 0.0025  # of p(u|z): a standard deviation of 5 % of a label's range


class ConditionalPrior(nn.Module):
    """p(z|u) = N(m(u), diag v(u)): the base class of priors given labels.

    A subclass makes its networks in ``attach``; the one that every prior has is ``encoder``, from u (n, d) to mean and
    log-variance (n, D).

    Parameters
    ----------
    hidden_size
        of each of the three hidden layers of its networks. None: 1000.
    """

    encoder: nn.Module
    learns_from_labels = False  # whether its own loss is on true labels, where labelled images come apart

    def __init__(self, hidden_size: Count | None = None) -> None:
        super().__init__()
        self.hidden_size: int | None = check_value("hidden_size", hidden_size, Count | None)

    @property
    def hidden(self) -> tuple[int, ...]:
        """The sizes of the hidden layers of its networks."""
        return HIDDEN if self.hidden_size is None else (self.hidden_size,) * len(HIDDEN)

    def settings(self) -> dict[str, Any]:
        """Its parameters."""
        return {"hidden_size": self.hidden_size}

    def attach(self, spec: VAESpec) -> None:
        """Make the networks for the labels and codes of a method."""
        layout = LabelLayout.from_spec(spec)
        self.encoder = _LabelEncoder(layout.width, spec.latent_size, self.hidden)

    def given(self, u: Tensor) -> Posterior:
        """p(z|u) of labels u (n, d), as the KL takes it."""
        return Posterior(*self.encoder(u))

    def prepare(self, u: Tensor) -> tuple[Posterior, Posterior]:
        """p(z|u) as the KL takes it, and with gradients to the weights for the prior's own loss."""
        prior = self.given(u)
        return prior, prior

    def forward(self, forward_pass: ConditionalPass) -> Terms:
        """What the prior adds to the objective."""
        return Terms()


class LearnedPrior(ConditionalPrior):
    """p(z|u) = N(m(u), diag v(u)), learned by the method's own KL (iVAE, Khemakhem et al. 2020).

    Where labels are missing, a bound on log p(x) also needs p(u), of which iVAE has no model. It is fixed: uniform over
    the categories of a one-hot label; for one on a scale the Gaussian with the mean and variance of its values, were
    they equally frequent. Mita et al. leave it out; without it nothing holds back the entropy of a Gaussian q(u|x).

    Parameters
    ----------
    hidden_size
        of each of the three hidden layers of its network. None: 1000.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("beta_tcvae", data, prior="conditional", latent_size=2)
    >>> import torch
    >>> method.prior.given(torch.zeros(3, 1)).mean.shape
    torch.Size([3, 2])
    """

    label_mean: Tensor
    label_variance: Tensor

    def attach(self, spec: VAESpec) -> None:
        """Make the network for the method's labels and codes."""
        super().attach(spec)
        mean, variance = LabelLayout.from_spec(spec).uniform_moments()
        self.register_buffer("label_mean", mean, persistent=False)
        self.register_buffer("label_variance", variance, persistent=False)

    def forward(self, forward_pass: ConditionalPass) -> Terms:
        """-E_q(u|x)[log p(u)] of the missing labels; nothing where all are given."""
        if not isinstance(forward_pass, PredictedPass):
            return Terms()
        cross_entropy = forward_pass.prediction.cross_entropy(self.label_mean, self.label_variance)
        missing = torch.where(forward_pass.missing, cross_entropy, 0.0)
        return Terms.of(label_prior=(missing.sum(1).mean(), 1.0))


class LabelVAE(ConditionalPrior):
    """p(z|u) = q(z|u), the encoder of a second VAE, on the labels alone (IDVAE, Mita et al., equation 16).

        log p(u) >= E_q(z|u)[log p(u|z)] - KL(q(z|u) || N(0, I))

    It learns by this bound only: in the method's own KL its weights are held fixed (section 4.1). p(u|z) is a Gaussian
    with diagonal covariance for labels on a scale, categorical for one-hot ones.

    Parameters
    ----------
    label_variance
        of that Gaussian, which the paper does not state. None: each label's own rounding error, 1 / (12 size^2), so
        that z has to distinguish the label's values ("sufficient"), but at least 0.0025, 5 % of the range: the less
        it is, the narrower q(z|u), which the main encoder has to meet as a prior. At the rounding error of 40 values
        the KL is thousands of nats, more than all else in the loss. The authors' code takes the sum of squared
        errors, which is 0.5. As labels in [0, 1] vary by 1/12 or less, q(z|u) then gains nothing from u, and falls
        back to N(0, I).
    hidden_size
        of each of the three hidden layers of both networks. None: 1000.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("idvae", data, latent_size=2)
    >>> import torch
    >>> method.prior.labels(torch.zeros(3, 2)).location.shape
    torch.Size([3, 1])
    """

    decoder: nn.Module
    log_variance: Tensor
    learns_from_labels = True

    def __init__(self, label_variance: Positive | None = None, hidden_size: Count | None = None) -> None:
        super().__init__(hidden_size)
        self.label_variance = check_value("label_variance", label_variance, Positive | None)

    def settings(self) -> dict[str, Any]:
        """Its parameters."""
        return {"label_variance": self.label_variance, **super().settings()}

    def attach(self, spec: VAESpec) -> None:
        """Make the networks for the method's labels and codes."""
        super().attach(spec)
        self.layout = LabelLayout.from_spec(spec)
        width = self.layout.width
        self.decoder = MLP(spec.latent_size, self.hidden, width, activation="leaky_relu")
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

    def prepare(self, u: Tensor) -> tuple[Posterior, Posterior]:
        """p(z|u) without and with gradients to the weights; where none goes on to u, one forward pass gives both."""
        trained = Posterior(*self.encoder(u))
        if u.requires_grad:
            return self.given(u), trained
        return Posterior(trained.mean.detach(), trained.log_variance.detach()), trained

    def labels(self, z: Tensor) -> LabelDistribution:
        """p(u|z) of codes z (n, D)."""
        return LabelDistribution(self.layout, self.decoder(z), self.log_variance)

    def forward(self, forward_pass: ConditionalPass) -> Terms:
        """The second VAE's own loss, on the labels of the batch; missing ones are draws from q(u|x)."""
        mean, log_variance = forward_pass.label_posterior
        z = reparameterise(mean, log_variance, standard_noise(mean, generator=forward_pass.generator))
        likelihood = self.labels(z).log_probability(forward_pass.u).sum(1).mean()
        kl = kl_to_standard_normal(mean, log_variance).sum(1).mean()
        return Terms.of(label_reconstruction=(-likelihood, 1.0), label_kl=(kl, 1.0))


PRIORS: dict[str, type[ConditionalPrior]] = {"conditional": LearnedPrior, "label_vae": LabelVAE}


def create_prior(given: Mapping[str, Any]) -> ConditionalPrior:
    """A prior by ``{"name": …}`` and its parameters.

    Examples
    --------
    >>> create_prior({"name": "label_vae", "label_variance": 0.01}).label_variance
    0.01
    """
    parameters = dict(given)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name not in PRIORS:
        raise unknown_name("prior", str(name), PRIORS)
    kind = PRIORS[name]
    known = list(defaults(kind))
    for key in parameters:
        if key not in known:
            raise unknown_name(f"parameter of {name}", str(key), ["name", *known])
    return kind(**check_arguments(kind, parameters))


class _LabelEncoder(nn.Module):
    """Hidden layers with leaky ReLU, two heads: u (n, d) to mean and log-variance (n, D)."""

    def __init__(self, width: int, latent_size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.features = MLP(width, hidden, None, activation="leaky_relu")
        self.heads = GaussianHeads(hidden[-1], latent_size)

    def forward(self, u: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.heads(self.features(u))
        return mean, log_variance
