"""The variational autoencoder that every method here is a composition on (Kingma & Welling 2014).

    loss = E_q(z|x)[-log p(x|z)]  +  sum of terms

The plain VAE has one term: KL(q(z|x) || N(0, I)). With a prior given labels u, q(z|x,u) and p(z|u) take their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from unweave.data import Dataset
from unweave.data.supervision.labels import Labels, labels_from_spec
from unweave.data.supervision.pairs import Pairs
from unweave.errors import ArgumentError
from unweave.methods.spec import MethodSpec
from unweave.methods.terms import Labelled, OptimiserSettings, Pass, Player, Posterior, Term, Terms
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.label_distribution import LabelLayout
from unweave.methods.vae.label_input import check_entries, check_shape
from unweave.methods.vae.marginal import mixture_posterior
from unweave.networks import initialise
from unweave.objectives import reparameterise, standard_noise

LabelMode = Literal["given", "predicted", "unknown"]
UNKNOWN_DRAWS = 64  # draws of u that stand for all labels where they are unknown


def vae() -> list[Term]:
    """VAE: the evidence lower bound, reconstruction + KL."""
    return [KL()]


class VAE(nn.Module):
    """Encoder, decoder, likelihood, noise and terms, put together. Made by ``unweave.methods.create``.

    ``composition``: its terms; for methods that learn from labels the prior p(z|u) and q(u|x); for those that learn
    from pairs, what these share. Parts that are modules (an adversary has weights) become part of the model.
    ``own_networks``: those whose weights ``initialise`` may draw (default: encoder and decoder). ``fresh``: not
    trained yet, so that ``train`` draws the initial weights from its own seed.
    """

    label_draws: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        likelihood: nn.Module,
        composition: Composition | Sequence[Term],
        *,
        spec: MethodSpec,
        own_networks: Sequence[nn.Module] | None = None,
    ) -> None:
        super().__init__()
        parts = composition if isinstance(composition, Composition) else Composition(composition)
        self.encoder = encoder
        self.decoder = decoder
        self.likelihood = likelihood
        self.terms = list(parts.terms)
        self.prior: Any = parts.prior
        self.predictor: Any = parts.predictor
        self.pairing = parts.pairing
        every: list[Any] = [*self.terms, self.prior, self.predictor]
        for part in every:
            if hasattr(part, "attach"):
                part.attach(spec)
        self.term_modules = nn.ModuleList(term for term in self.terms if isinstance(term, nn.Module))
        self.spec = spec
        self.layout = None if spec.labels is None else LabelLayout.of(spec.labels)
        if self.prior is not None and self.layout is not None:
            self.register_buffer("label_draws", torch.zeros(UNKNOWN_DRAWS, self.layout.width))
        self._label_array: npt.NDArray[Any] | None = None
        self._own_networks = (encoder, decoder) if own_networks is None else tuple(own_networks)
        self.fresh = True
        self.initialise(0)

    # --- using a trained model -----------------------------------------------------------------

    def encode(self, images: Tensor, u: Tensor | npt.ArrayLike | None = None) -> Posterior:
        """The posterior of images (n, C, H, W) in [0, 1].

        An encoder that takes labels gets ``u`` (n, d); without it, those that q(u|x) predicts, if the method has
        one, and else they count as unknown: see ``posterior``.
        """
        if not self.label_modes and u is None:
            return Posterior(*self.encoder(images))
        if u is not None:
            return self.posterior(images, "given", u)
        return self.posterior(images, "unknown" if self.predictor is None else "predicted")

    @property
    def label_modes(self) -> tuple[LabelMode, ...]:
        """The ways in which ``posterior`` can treat labels; none, where the encoder takes no labels."""
        if self.prior is None:
            return ()
        return ("given", "unknown") if self.predictor is None else ("given", "predicted", "unknown")

    def posterior(
        self, images: Tensor, labels: LabelMode, u: Tensor | npt.ArrayLike | None = None
    ) -> Posterior:
        """The posterior of images by an encoder that takes labels, and how it comes by them:

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
            told = ", ".join(self.label_modes) or "none: its encoder takes no labels"
            raise ArgumentError("labels", labels, f"{self.spec.name} has {told}")
        if (labels == "given") != (u is not None):
            raise ArgumentError("u", None if u is None else "a tensor", "goes with 'given', and only with it")
        if labels == "unknown":
            return Posterior(*mixture_posterior(self.encoder, images, self.label_draws))
        return Posterior(*self.encoder(images, self.completed(images, u)))

    def completed(self, images: Tensor, u: Tensor | npt.ArrayLike | None = None) -> Tensor:
        """u (n, d) without NaN: a missing label, or all of them, are the most probable ones under q(u|x)."""
        known = None if u is None else self._check_labels(u, images, entries=True)
        if known is not None and not known.isnan().any():
            return known
        if self.predictor is None:
            raise ArgumentError("u", None, f"{self.spec.name} has no q(u|x) to predict missing labels")
        found: Tensor = self.predictor.predict(images).mode()
        return found if known is None else torch.where(known.isnan(), found, known)

    def encode_given(self, images: Tensor, u: Tensor | npt.ArrayLike) -> Posterior:
        """q(z|x,u): the same as ``posterior(images, "given", u)``."""
        return self.posterior(images, "given", u)

    def decode(self, z: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes z (n, D)."""
        return self.likelihood.mean(self.decoder(z))  # type: ignore[operator,no-any-return]

    def reconstruct(self, images: Tensor) -> Tensor:
        """Images decoded from their mean codes."""
        return self.decode(self.encode(images).mean)

    # --- labels and pairs ----------------------------------------------------------------------

    def take_labels(self, labels: Labels) -> None:
        """Keep what is needed of the labels that the method was created with."""
        self._label_array = labels.array
        if self.prior is not None:
            draws = labels.sample(UNKNOWN_DRAWS, np.random.default_rng(0))
            self.label_draws = torch.from_numpy(draws).to(self.label_draws)

    def remember_labels(self, array: npt.ArrayLike) -> None:
        """Take the array of labels again that a loaded method was created with; ``labels_for`` checks that it is."""
        if "array" not in (self.spec.labels or {}):
            raise ArgumentError(
                "labels", np.shape(array), f"this {self.spec.name} did not learn from an array"
            )
        self._label_array = np.array(array)

    @property
    def lacks_labels(self) -> bool:
        """Whether it learned from an array of labels that it has to be given again to look them up."""
        return "array" in (self.spec.labels or {}) and self._label_array is None

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that the method learns from; None if it learns from images alone."""
        if self.spec.labels is None:
            return None
        return labels_from_spec(self.spec.labels, data, self._label_array)

    def pairs_for(self, data: Dataset) -> Pairs | None:
        """The pairs of ``data`` that the method learns from; None if images come one by one."""
        return None if self.pairing is None else self.pairing.pairs_of(data, self.spec)

    def check_images(self, data: Dataset) -> None:
        """Refuse data whose images have another shape than the method is for."""
        if list(data.image_shape) != list(self.spec.image_shape):
            told = f"has images {tuple(data.image_shape)}, the method is for {tuple(self.spec.image_shape)}"
            raise ArgumentError("data", data.name, told)

    # --- training ------------------------------------------------------------------------------

    def initialise(self, seed: int) -> None:
        """Draw all weights anew (Glorot uniform, zero bias). A user's own networks keep theirs."""
        generator = torch.Generator().manual_seed(seed)
        label_parts = [part for part in (self.prior, self.predictor) if part is not None]
        for module in (*self._own_networks, *self.term_modules, *label_parts):
            initialise(module, generator)

    def begin(
        self,
        images: Tensor,
        step: int,
        generator: torch.Generator | None = None,
        *,
        u: Tensor | None = None,
        labelled_images: Tensor | None = None,
        labelled_u: Tensor | None = None,
        changed: Tensor | None = None,
    ) -> Pass:
        """One forward pass: all players of a training step use it.

        ``u`` (n, d) are the labels of the images, NaN where missing; ``labelled_images`` and ``labelled_u`` are further
        images with labels, for what is learned from those only. Without them it is learned from the first.

        Of pairs, ``images`` are all first ones and then their partners; ``changed`` (n/2, K): which factors may differ.
        """
        u = None if self.layout is None else self._check_labels(u, images)
        prediction = missing = None
        if self.predictor is not None and u is not None:
            prediction = self.predictor.predict(images)
            missing = ~self.layout.known(u)  # type: ignore[union-attr]
            drawn = prediction.sample(self.predictor.temperature, generator)
            u = torch.where(u.isnan(), drawn, u)
        mean, log_variance = self.encoder(images) if self.prior is None else self.encoder(images, u)
        if self.pairing is not None:
            mean, log_variance = self.pairing.join(
                Posterior(mean, log_variance), self._check_pairs(changed, images)
            )
        noise = standard_noise(mean, self.spec.correlation, generator)
        z = reparameterise(mean, log_variance, noise)
        made = Pass(
            images=images,
            step=step,
            mean=mean,
            log_variance=log_variance,
            z=z,
            output=self.decoder(z),
            correlation=self.spec.correlation,
            dataset_size=self.spec.dataset_size,
            generator=generator,
            u=u,
            missing=missing,
            prediction=prediction,
        )
        if self.prior is not None:
            self.prior.prepare(made)
        if u is not None:
            made.labelled = self._labelled(made, labelled_images, labelled_u)
        return made

    def loss(self, made: Pass) -> Terms:
        """The model's objective: reconstruction and the terms."""
        total = Terms.of(reconstruction=(self.likelihood(made.output, made.images), 1.0))
        for part in (*self.terms, self.prior, self.predictor):
            if part is not None:
                total.add(part(made))
        return total

    def players(self) -> list[Player]:
        """The model itself, and the adversaries that its terms bring."""
        adversaries = [term.adversary() for term in self.terms if hasattr(term, "adversary")]
        theirs = {id(parameter) for player in adversaries for parameter in player.parameters}
        own = [p for p in self.parameters() if id(p) not in theirs and p.requires_grad]
        return [Player("model", own, self.loss, OptimiserSettings()), *adversaries]

    # --- inside --------------------------------------------------------------------------------

    def _check_labels(
        self, given: Tensor | npt.ArrayLike | None, images: Tensor, *, entries: bool | None = None
    ) -> Tensor:
        """Labels as a tensor (n, d) like the images.

        Their ``entries`` are looked at if they are on a CPU (None): anywhere else each look would wait for the device.
        """
        assert self.layout is not None
        u = check_shape(given, self.layout, len(images), self.spec.name)
        if entries or (entries is None and u.is_cpu):
            check_entries(u, self.layout, self.spec.name, self.prior is None or self.predictor is not None)
        return u.to(images)

    def _check_pairs(self, changed: Tensor | None, images: Tensor) -> Tensor:
        if changed is None or 2 * len(changed) != len(images):
            told = None if changed is None else f"a tensor of shape {tuple(changed.shape)}"
            needs = f"{self.spec.name} needs pairs of images, and for each which factors changed"
            raise ArgumentError("changed", told, f"{needs}; there are {len(images)} images")
        return changed

    def _labelled(self, made: Pass, images: Tensor | None, u: Tensor | None) -> Labelled:
        """The images with labels of a step: others, if given, and else those of the batch itself."""
        if images is None:
            assert made.u is not None
            kept = made.u
            if made.missing is not None and self.layout is not None:
                kept = kept.detach().masked_fill(self.layout.entries(made.missing), torch.nan)
            return Labelled(kept, made.mean if self.prior is None else None, made.prediction)
        return Labelled(
            self._check_labels(u, images),
            self.encoder(images)[0] if self.prior is None else None,
            None if self.predictor is None else self.predictor.predict(images),
        )
