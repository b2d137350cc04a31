"""The variational autoencoder that every method of this family is a composition on (Kingma & Welling 2014).

    loss = E_q(z|x)[-log p(x|z)]  +  sum of terms

The VAE itself has one term: KL(q(z|x) || N(0, I)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unweave.arrays import AnyArray, ArrayLike
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, LabelledBatch
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError
from unweave.methods.method import EvidenceBound, LabelMode, Method, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import VAESpec
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.likelihoods import Likelihood
from unweave.methods.vae.scheduled_terms import ScheduledTerms
from unweave.methods.vae.supervision import Supervision
from unweave.methods.vae.terms import LabelledPass, Pass, Term
from unweave.networks import initialise
from unweave.networks.adain import SplitCodeDecoder
from unweave.objectives import kl_to_standard_normal, reparameterise, standard_noise


@register_method(
    "vae", label="VAE", paper="Kingma & Welling 2014", color="#000000", marker="p", order=1, labels="none"
)
def vae() -> list[Term[Any]]:
    """VAE: the evidence lower bound, reconstruction + KL.

    Examples
    --------
    >>> vae()
    [KL(weight=1.0)]
    """
    return [KL()]


@dataclass(frozen=True)
class Networks:
    """The networks of a VAE. ``given``: those of the user's own, whose weights are never drawn anew."""

    encoder: nn.Module
    decoder: nn.Module
    likelihood: Likelihood
    given: Sequence[nn.Module] = ()


class VAE(Method):
    """Encoder, decoder, likelihood, noise and terms, put together by :func:`unweave.methods.create`.

    Parts that are modules (an adversary has weights) become part of the model.

    Parameters
    ----------
    networks
        encoder, decoder and likelihood.
    composition
        the terms, and what images in pairs share.
    spec
        what the method is, as plain data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> method = uw.methods.create("beta_vae", data, latent_size=2)
    >>> method.encode(data.batch(0, 3).images).mean.shape
    torch.Size([3, 2])
    >>> method.sample(5).shape
    torch.Size([5, 6])
    """

    spec: VAESpec

    def __init__(self, networks: Networks, composition: Composition, spec: VAESpec) -> None:
        super().__init__()
        self.encoder, self.decoder, self.likelihood = networks.encoder, networks.decoder, networks.likelihood
        self.terms = list(composition.terms)
        self.spec = spec
        self.scheduled: ScheduledTerms | None = None
        self.supervision = Supervision(spec, composition.pairing, self._may_lack_labels(composition))
        self._own_networks = [
            network for network in (self.encoder, self.decoder) if network not in networks.given
        ]
        self._attach(composition)
        for term in self.terms:
            term.attach(spec)
        self.term_modules = nn.ModuleList(term for term in self.terms if isinstance(term, nn.Module))
        adversaries = [player.name for term in self.terms if (player := term.adversary()) is not None]
        if len(set(adversaries)) < len(adversaries):  # each has an optimiser of its name
            needs = "needs adversaries of different names; FactorVAE and density_ratio have a 'discriminator'"
            raise ArgumentError("extra_terms", f"adversaries {adversaries}", needs)
        self.initialise(0)

    # --- using a trained model ------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, slice]:
        """The named parts of a code: z; those of the decoder, where it tells several apart."""
        if isinstance(self.decoder, SplitCodeDecoder):
            return self.decoder.parts
        return {"z": slice(0, self.spec.latent_size)}

    @property
    def noise_correlation(self) -> float:
        """s of the posterior's noise covariance (1-s) I + s 11^T."""
        return self.spec.correlation

    @property
    def image_encoder(self) -> nn.Module:
        """The encoder."""
        return self.encoder

    def encode(self, images: Tensor) -> Posterior:
        """q(z|x) of images (n, C, H, W) in [0, 1]."""
        return Posterior(*self.encoder(images))

    def decode(self, codes: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes (n, D)."""
        return self.likelihood.mean(self.decoder(codes))

    def reconstruct(self, images: Tensor) -> Tensor:
        """Images decoded from their mean codes."""
        return self.decode(self.encode(images).mean)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """The expected images (n, C, H, W) of n codes from the prior."""
        like = next(self.decoder.parameters())
        shape = (n, self.spec.latent_size)
        return self.decode(torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device))

    def evidence_bound(
        self,
        images: Tensor,
        generator: torch.Generator | None = None,
        labels: LabelMode | None = None,
        u: Tensor | None = None,
    ) -> EvidenceBound:
        """Reconstruction and KL of images (n, C, H, W), by one draw of z each."""
        if labels is not None:
            raise ArgumentError("labels", labels, f"{self.spec.name} has none: its encoder takes no labels")
        posterior = self.encode(images)
        return self._bound(images, posterior, kl_to_standard_normal(*posterior), generator)

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> Pass:
        """One forward pass; a batch with labels gives a :class:`LabelledPass`."""
        batch = self.supervision.check(batch)
        values = self._forward(Posterior(*self.encoder(batch.images)), batch, step, generator)
        if not isinstance(batch, LabelledBatch):
            return Pass(**values)
        if batch.labelled is None:
            return LabelledPass(**values, labelled_u=batch.u, labelled_mean=values["posterior"].mean)
        mean, _ = self.encoder(batch.labelled.images)
        return LabelledPass(**values, labelled_u=batch.labelled.u, labelled_mean=mean)

    def loss(self, forward_pass: Any) -> Terms:
        """The model's objective: reconstruction and the terms."""
        reconstruction = self.likelihood(forward_pass.output, forward_pass.images)
        total = Terms.of(reconstruction=(reconstruction, 1.0))
        for term in self.terms:
            total.add(term(forward_pass))
        return total

    def players(self) -> list[Player]:
        """The model itself, and the adversaries that its terms bring."""
        adversaries = [player for term in self.terms if (player := term.adversary()) is not None]
        theirs = {id(parameter) for player in adversaries for parameter in player.parameters}
        ours = [p for p in self.parameters() if id(p) not in theirs and p.requires_grad]
        return [Player("model", ours, self.loss), *adversaries]

    def initialise(self, seed: int) -> None:
        """Draw all weights anew (Glorot uniform, zero bias). A user's own networks keep theirs."""
        generator = torch.Generator().manual_seed(seed)
        for module in (*self._own_networks, *self.term_modules, *self._conditioning()):
            initialise(module, generator)

    # --- supervision ----------------------------------------------------------------------------------

    def batches(self, data: Dataset) -> Batches:
        """Training batches of ``data``, with the labels and pairs that the method learns from."""
        return self.supervision.batches(data)

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that the method learns from; None if it learns from none."""
        return self.supervision.labels_for(data)

    def take_labels(self, labels: Labels) -> None:
        """Take the labels that the method is created with."""
        self.supervision.array = labels.array

    @property
    def label_array(self) -> AnyArray | None:
        """The array of labels that the method was created with, and holds; None if its labels are factors."""
        return self.supervision.array

    def remember_labels(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with."""
        self.supervision.remember(array)

    # --- for subclasses -------------------------------------------------------------------------------

    def _attach(self, composition: Composition) -> None:
        """Take up further parts, before the terms."""

    def _conditioning(self) -> Sequence[nn.Module]:
        """Further parts whose weights ``initialise`` draws."""
        return ()

    def _may_lack_labels(self, composition: Composition) -> bool:
        """Whether images without labels can be learned from."""
        return True

    def _forward(
        self, posterior: Posterior, batch: Batch, step: int, generator: torch.Generator | None
    ) -> dict[str, Any]:
        """What every forward pass has, from the posteriors of its images."""
        if self.scheduled is not None:
            self.scheduled.set(step)
        joined = self.supervision.join(posterior, batch)
        z = self._draw(joined, generator)
        return {
            "batch": batch,
            "step": step,
            "posterior": joined,
            "z": z,
            "output": self.decoder(z),
            "correlation": 0.0 if self.spec.correlated == "noise" else self.spec.correlation,
            "dataset_size": self.spec.dataset_size,
            "generator": generator,
        }

    def _draw(self, posterior: Posterior, generator: torch.Generator | None) -> Tensor:
        noise = standard_noise(posterior.mean, self.spec.correlation, generator)
        return reparameterise(*posterior, noise)

    def _bound(
        self, images: Tensor, posterior: Posterior, kl: Tensor, generator: torch.Generator | None
    ) -> EvidenceBound:
        reconstruction = self.likelihood(self.decoder(self._draw(posterior, generator)), images)
        return EvidenceBound(posterior, reconstruction, kl)
