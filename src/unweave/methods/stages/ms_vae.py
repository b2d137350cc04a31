"""MS-VAE: details for the reconstructions of a disentangled model, without touching its codes.

"Improving the reconstruction of disentangled representation learners via multi-stage modelling" (2020), section 3. A
first stage, C -> Y, is trained and frozen. The second, (Y, Z) -> X, maximises term (b) of the paper's equation 2,

    E_q(z|x,y)[log p(x|z,y)] - KL(q(z|x,y) || N(0, I)).

The paper trains it with Adam 1e-4 and batches of 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unweave.data import Dataset
from unweave.data.batches import Batch, Batches
from unweave.errors import ArgumentError
from unweave.methods.method import EvidenceBound, LabelMode, Method, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import Stage
from unweave.methods.stages.first_stage import FirstStage, check_same_data
from unweave.networks import ConvEncoder, initialise
from unweave.networks.adain import AdaINDecoder
from unweave.objectives import kl_to_standard_normal, reconstruction, reparameterise, standard_noise
from unweave.parameters import Count


class StagePass(NamedTuple):
    """A forward pass of the second stage: images (n, C, H, W), y alike, q(z|x,y), and the logits of x."""

    images: Tensor
    y: Tensor
    posterior: Posterior
    logits: Tensor


@register_method(
    "ms_vae",
    label="MS-VAE",
    paper="Multi-stage modelling 2020",
    strength="latent_size",
    strength_label="|Z|",
    color="#E69F00",
    marker="P",
    order=20,
    labels="none",
)
class MSVAE(Method):
    """reconstruction from y and z + KL(z); y is the image that a frozen first stage decodes.

    The residual encoder R reads x - y and gives q(z|x,y). The decoder G reads y and takes z by adaptive instance
    normalisation: :class:`~unweave.networks.adain.AdaINDecoder`. The codes have the parts "c", of the first stage, and
    "z". Images are squares of 28, 32, 64 or 128 pixels.

    Parameters
    ----------
    image_shape
        (H, W, C) as stored.
    first
        the first stage, any method that encodes and decodes. ``create`` takes its run, or the run's folder.
    latent_size
        |Z|; the paper has 5 on Cars3D and 10 on SmallNORB.
    y_from
        what y is decoded from in training: the "mean" of q(c|x), or one "draw" from it. Elsewhere it is the mean.
    modulation
        how z enters G: per "channel" as in the paper, or per channel and "position" as in its code.
    other_data
        allow a first stage that was trained on other data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> first = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, steps=1, batch_size=2)
    >>> method = uw.methods.create("ms_vae", data, first=first, latent_size=2)
    >>> method.parts
    {'c': slice(0, 3, None), 'z': slice(3, 5, None)}
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        first: Stage = None,
        latent_size: Count = 5,
        y_from: Literal["mean", "draw"] = "mean",
        modulation: Literal["channel", "position"] = "channel",
        other_data: bool = False,
    ) -> None:
        super().__init__()
        self.first = FirstStage(first, image_shape)
        self.latent_size, self.y_from, self.other_data = latent_size, y_from, other_data
        self.encoder = ConvEncoder(image_shape, latent_size)
        self.decoder = AdaINDecoder(image_shape, latent_size, modulation)
        self.initialise(0)

    # --- using a trained model ------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, slice]:
        """The named parts of a code: c of the first stage, and z."""
        size = self.first.code_size
        return {"c": slice(0, size), "z": slice(size, size + self.latent_size)}

    @property
    def noise_correlation(self) -> float | None:
        """As of the first stage, whose noise is independent, as that of z is."""
        return self.first.method.noise_correlation

    def encode(self, images: Tensor) -> Posterior:
        """q(c|x) and q(z|x,y) of images (n, C, H, W), side by side; y is that of the mean of c."""
        c = self.first.encode(images)
        return _joined(c, self._residual(images, self.first.decode(c.mean)))

    def decode(self, codes: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes (n, |C| + |Z|)."""
        return self.refine(self.decode_first(codes), codes[:, self.parts["z"]])

    def refine(self, y: Tensor, z: Tensor) -> Tensor:
        """G(y, z): the expected images (n, C, H, W) of y (n, C, H, W) and z (n, |Z|)."""
        return torch.sigmoid(self.decoder(y, z))

    def encode_first(self, images: Tensor) -> Posterior:
        """q(c|x) of images (n, C, H, W), of the first stage alone."""
        return self.first.encode(images)

    def decode_first(self, codes: Tensor) -> Tensor:
        """y (n, C, H, W) of codes (n, |C| + |Z|): what the first stage alone makes of them."""
        return self.first.decode(codes[:, self.parts["c"]])

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """y and x (n, C, H, W) of codes (n, |C| + |Z|): without and with what z adds."""
        return {"y": self.decode_first(codes), "x": self.decode(codes)}

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """The expected images (n, C, H, W) of n codes: c from the first stage's prior, z from N(0, I)."""
        y = self.first.sample(n, generator)
        z = torch.randn(n, self.latent_size, generator=generator, dtype=y.dtype, device=y.device)
        return self.refine(y, z)

    def evidence_bound(
        self,
        images: Tensor,
        generator: torch.Generator | None = None,
        labels: LabelMode | None = None,
        u: Tensor | None = None,
    ) -> EvidenceBound:
        """Term (b): a bound on log p(x|y), by one draw of z each. It has no KL of c, whose columns are 0."""
        if labels is not None:
            raise ArgumentError("labels", labels, f"{self.spec.name} has none: its encoder takes no labels")
        c = self.first.encode(images)
        result = self._forward(images, self.first.decode(c.mean), generator)
        kl = kl_to_standard_normal(*result.posterior)
        return EvidenceBound(
            _joined(c, result.posterior),
            reconstruction.bernoulli(result.logits, images),
            torch.cat([torch.zeros_like(c.mean), kl], dim=1),
        )

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> StagePass:
        """One forward pass; the first stage takes no part in its gradient."""
        y = self.first.reconstruct(batch.images, self.y_from, generator)
        return self._forward(batch.images, y, generator)

    def loss(self, result: StagePass) -> Terms:
        """Cross entropy summed over pixels, and KL(q(z|x,y) || N(0, I))."""
        kl = kl_to_standard_normal(*result.posterior).sum(1).mean()
        return Terms.of(
            reconstruction=(reconstruction.bernoulli(result.logits, result.images), 1.0), kl=(kl, 1.0)
        )

    def players(self) -> list[Player]:
        """The second stage's networks, which are one player."""
        return [Player("model", [*self.encoder.parameters(), *self.decoder.parameters()], self.loss)]

    def initialise(self, seed: int) -> None:
        """Draw the second stage's weights anew (Glorot uniform, zero bias); the first stage keeps its own."""
        generator = torch.Generator().manual_seed(seed)
        for network in (self.encoder, self.decoder):
            initialise(network, generator)

    def batches(self, data: Dataset) -> Batches:
        """Images of ``data``, which must be what the first stage was trained on unless ``other_data`` was asked for."""
        if not self.other_data:
            check_same_data(self.spec.hyperparameters["first"], data)
        return super().batches(data)

    def _forward(self, images: Tensor, y: Tensor, generator: torch.Generator | None) -> StagePass:
        posterior = self._residual(images, y)
        z = reparameterise(*posterior, standard_noise(posterior.mean, generator=generator))
        return StagePass(images, y, posterior, self.decoder(y, z))

    def _residual(self, images: Tensor, y: Tensor) -> Posterior:
        """q(z|x,y)."""
        return Posterior(*self.encoder(images - y))


def _joined(c: Posterior, z: Posterior) -> Posterior:
    """Two posteriors side by side."""
    mean = torch.cat([c.mean, z.mean], dim=1)
    return Posterior(mean, torch.cat([c.log_variance.expand_as(c.mean), z.log_variance], dim=1))
