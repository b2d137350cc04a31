"""A VAE whose encoder takes labels u, and whose prior is given them (Khemakhem et al. 2020; Mita et al. 2021).

    loss = E_q(z|x,u)[-log p(x|z)]  +  sum of terms, with KL(q(z|x,u) || p(z|u))  +  the prior's own loss

The prior p(z|u), and q(u|x) for labels that are missing, are parts: any method of this family takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unweave.arrays import ArrayLike
from unweave.data import Dataset
from unweave.data.batches import Batch, LabelledBatch
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError
from unweave.methods.label_layout import LabelLayout
from unweave.methods.labelled import NUM_DRAWS, draw_labels
from unweave.methods.method import EvidenceBound, LabelMode, Posterior, Terms
from unweave.methods.spec import VAESpec
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.conditional_prior import ConditionalPrior
from unweave.methods.vae.label_predictor import LabelPredictor
from unweave.methods.vae.terms import ApartPass, ConditionalPass, PredictedPass
from unweave.methods.vae.vae import VAE, Networks
from unweave.networks import GaussianEncoder
from unweave.objectives import kl_between, reparameterise, standard_noise


class ConditionalVAE(VAE):
    """A VAE with q(z|x,u) and p(z|u), put together by :func:`unweave.methods.create`.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> method = uw.methods.create("ivae", data, latent_size=2)
    >>> method.label_modes
    ('given', 'unknown')
    >>> u = method.labels_for(data).known([0, 1, 2])
    >>> method.posterior(data.batch(0, 3).images, "given", u).mean.shape
    torch.Size([3, 2])
    """

    prior: ConditionalPrior
    predictor: LabelPredictor | None
    label_draws: Tensor

    def __init__(self, networks: Networks, composition: Composition, spec: VAESpec) -> None:
        super().__init__(networks, composition, spec)
        self.layout = LabelLayout.from_spec(spec)
        self.register_buffer("label_draws", torch.zeros(NUM_DRAWS, self.layout.width))

    # --- using a trained model ------------------------------------------------------------------------

    @property
    def label_modes(self) -> tuple[LabelMode, ...]:
        """The ways in which ``posterior`` can get labels."""
        return ("given", "unknown") if self.predictor is None else ("given", "predicted", "unknown")

    def encode(self, images: Tensor, u: Tensor | ArrayLike | None = None) -> Posterior:
        """The posterior of images (n, C, H, W) in [0, 1].

        With ``u`` (n, d) it is q(z|x,u); without, labels are predicted, if the method has a q(u|x), and else they
        count as unknown: see ``posterior``.
        """
        if u is not None:
            return self.posterior(images, "given", u)
        return self.posterior(images, "unknown" if self.predictor is None else "predicted")

    def posterior(self, images: Tensor, labels: LabelMode, u: Tensor | ArrayLike | None = None) -> Posterior:
        """The posterior of images, with labels from one of three sources.

        "given"
            q(z|x,u) for the given ``u`` (n, d), a tensor or an array; a missing label (NaN) is predicted, if the
            method can.
        "predicted"
            q(z|x,u) for the most probable u under q(u|x).
        "unknown"
            mean and variances of q(z|x) = E_p(u)[q(z|x,u)], where p(u) is how labels are distributed in the data: 64
            draws of u, kept with the weights. No label of the image itself, nor any guess of it, goes in.
        """
        if labels not in self.label_modes:
            raise ArgumentError("labels", labels, f"{self.spec.name} has {', '.join(self.label_modes)}")
        if (labels == "given") != (u is not None):
            raise ArgumentError("u", None if u is None else "a tensor", "goes with 'given', and only with it")
        if labels == "unknown":
            return mixture_posterior(self.encoder, images, self.label_draws)
        return Posterior(*self.encoder(images, self.complete(images, u)))

    def complete(self, images: Tensor, u: Tensor | ArrayLike | None = None) -> Tensor:
        """u (n, d) without NaN: a missing label, or all of them, are the most probable ones under q(u|x)."""
        known = None if u is None else self.supervision.check_labels(u, images, entries=True)
        if known is not None and not known.isnan().any():
            return known
        if self.predictor is None:
            raise ArgumentError("u", None, f"{self.spec.name} has no q(u|x) to predict missing labels")
        predicted = self.predictor.predict(images).mode()
        return predicted if known is None else torch.where(known.isnan(), predicted, known)

    @property
    def label_size(self) -> int:
        """d, the number of entries of u."""
        return self.layout.width

    def prior_given(self, u: Tensor) -> Posterior:
        """p(z|u) of labels (n, d)."""
        return self.prior.given(u)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """The expected images (n, C, H, W) of n codes from p(z|u), with u as it is distributed in the data."""
        draws = self.label_draws
        chosen = torch.randint(len(draws), (n,), generator=generator, device=draws.device)
        mean, log_variance = self.prior.given(draws[chosen])
        return self.decode(reparameterise(mean, log_variance, standard_noise(mean, generator=generator)))

    def evidence_bound(
        self,
        images: Tensor,
        generator: torch.Generator | None = None,
        labels: LabelMode | None = None,
        u: Tensor | None = None,
    ) -> EvidenceBound:
        """Reconstruction and KL(q(z|x,u) || p(z|u)) of images (n, C, H, W), by one draw of z each.

        With "unknown" labels the KL is NaN: the mixture over labels has no closed form.
        """
        mode = labels or ("unknown" if self.predictor is None else "predicted")
        posterior = self.posterior(images, mode, u)
        if mode == "unknown":
            kl = torch.full_like(posterior.mean, torch.nan)
        else:
            kl = kl_between(*posterior, *self.prior.given(self.complete(images, u)))
        return self._bound(images, posterior, kl, generator)

    # --- labels ---------------------------------------------------------------------------------------

    def take_labels(self, labels: Labels) -> None:
        """Take the labels that the method is created with, and keep how they are distributed."""
        super().take_labels(labels)
        self.label_draws = draw_labels(labels).to(self.label_draws)

    @property
    def lacks_labels(self) -> bool:
        """Whether it learned from an array of labels that it has to be given again."""
        return self.supervision.lacks_array

    def labels_for(self, data: Dataset) -> Labels:
        """The labels of ``data`` that the method learns from."""
        labels = super().labels_for(data)
        if labels is None:
            raise ArgumentError("labels", None, f"{self.spec.name} learns from labels: the spec needs them")
        return labels

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> ConditionalPass:
        """One forward pass; with a q(u|x) it is a :class:`PredictedPass`."""
        batch = self.supervision.check_labelled(batch)
        if self.predictor is None:
            return ConditionalPass(**self._conditioned(batch, batch.u, step, generator))
        if batch.labelled is not None and self.labelled_apart:
            return self._apart(self.predictor, batch, batch.labelled, step, generator)
        prediction = self.predictor.predict(batch.images)
        drawn = prediction.sample(self.predictor.temperature, generator)
        u = torch.where(batch.u.isnan(), drawn, batch.u)
        labelled, of_labelled = batch, prediction
        values = self._conditioned(batch, u, step, generator)
        if batch.labelled is not None:
            labelled, of_labelled = batch.labelled, self.predictor.predict(batch.labelled.images)
        return PredictedPass(
            **values,
            missing=~self.layout.known(batch.u),
            prediction=prediction,
            labelled_u=labelled.u,
            labelled_prediction=of_labelled,
        )

    def loss(self, forward_pass: Any) -> Terms:
        """The model's objective: reconstruction, the terms, and those of the prior and of q(u|x)."""
        total = super().loss(forward_pass)
        if not isinstance(forward_pass, ApartPass):
            for part in self._conditioning():
                total.add(part(forward_pass))
            return total
        labelled = super().loss(forward_pass.labelled_pass)
        values = {f"labelled_{name}": value for name, value in labelled.values.items()}
        total.add(Terms(values, {f"labelled_{name}": weight for name, weight in labelled.weights.items()}))
        total.add(self.prior(forward_pass.labelled_pass if self.prior.learns_from_labels else forward_pass))
        if self.predictor is not None:
            total.add(self.predictor(forward_pass))
        return total

    # --- inside ---------------------------------------------------------------------------------------

    def _apart(
        self,
        predictor: LabelPredictor,
        batch: LabelledBatch,
        labelled: LabelledBatch,
        step: int,
        generator: torch.Generator | None,
    ) -> ApartPass:
        """Images taken without labels, and labelled ones, each with a forward pass of its own."""
        prediction, of_labelled = predictor.predict(batch.images), predictor.predict(labelled.images)
        drawn, filling = (q.sample(predictor.temperature, generator) for q in (prediction, of_labelled))
        known = torch.where(labelled.u.isnan(), filling, labelled.u)
        return ApartPass(
            **self._conditioned(batch, drawn, step, generator),
            missing=~self.layout.known(torch.full_like(batch.u, torch.nan)),
            prediction=prediction,
            labelled_u=labelled.u,
            labelled_prediction=of_labelled,
            labelled_pass=ConditionalPass(**self._conditioned(labelled, known, step, generator)),
        )

    def _conditioned(
        self, batch: Batch, u: Tensor, step: int, generator: torch.Generator | None
    ) -> dict[str, Any]:
        values = self._forward(Posterior(*self.encoder(batch.images, u)), batch, step, generator)
        prior, label_posterior = self.prior.prepare(u)
        return {**values, "u": u, "prior": prior, "label_posterior": label_posterior}

    def _attach(self, composition: Composition) -> None:
        if composition.prior is None:
            raise ArgumentError("prior", None, f"{self.spec.name} needs one: its encoder takes labels")
        self.prior, self.predictor = composition.prior, composition.predictor
        self.labelled_apart = (self.spec.labels or {}).get("batches") == "apart"
        if self.labelled_apart and self.predictor is None:
            raise ArgumentError("batches", "apart", f"{self.spec.name} needs the labels of all images")
        for part in self._conditioning():
            part.attach(self.spec)

    def _conditioning(self) -> Sequence[ConditionalPrior | LabelPredictor]:
        return [part for part in (self.prior, self.predictor) if part is not None]

    def _may_lack_labels(self, composition: Composition) -> bool:
        return composition.predictor is not None


def mixture_posterior(encoder: nn.Module, images: Tensor, draws: Tensor) -> Posterior:
    """Mean and log-variance, (n, D) each, of the equal mixture of q(z|x,u) over M draws of u, (M, d).

    The mean is E_u[mean(x,u)], the variance E_u[variance(x,u)] + Var_u[mean(x,u)].
    """
    mean, log_variance = _for_each(encoder, images, draws.to(images.dtype))
    variance = log_variance.exp().mean(1) + mean.var(1, unbiased=False)
    return Posterior(mean.mean(1), variance.log())


def _for_each(encoder: nn.Module, images: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log-variance of every image with every u, (n, M, D) each."""
    n, count = len(images), len(draws)
    if isinstance(encoder, GaussianEncoder) and type(encoder).forward is GaussianEncoder.forward:
        # u joins late, so all else is computed once
        features = encoder.extract(images)
        mean, log_variance = encoder.heads(features[:, None].expand(-1, count, -1), draws.expand(n, -1, -1))
        return mean, log_variance
    pairs = [encoder(images, u.expand(n, -1)) for u in draws]
    return torch.stack([mean for mean, _ in pairs], 1), torch.stack(
        [log_variance for _, log_variance in pairs], 1
    )
