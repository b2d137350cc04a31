"""MS-VAE: details for the reconstructions of a disentangled model, without touching its codes.

"Improving the reconstruction of disentangled representation learners via multi-stage modelling" (2020), section 3. A
first stage, C -> Y, is trained and frozen. The second, (Y, Z) -> X, maximises term (b) of the paper's equation 2,

    E_q(z|x,y)[log p(x|z,y)] - KL(q(z|x,y) || N(0, I)).

The paper trains it with Adam 1e-4 and batches of 32. Its ablations (appendix L) are settings:

=====  ==================================================================================================
M2     ``condition="concatenation"``: c and z side by side are the input of the decoder
M3     ``condition="c"``: the decoder reads c instead of y, and z enters by AdaIN
M4     MS-VAE as it is
M5     z before c: the first stage is a VAE, and ``first_part="z", encode_from="image",
       condition="concatenation", beta=…`` learn c
=====  ==================================================================================================

M1 is no stage but a VAE whose decoder has the architecture "adain", with a higher weight on the KL of c.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from unweave.data import Dataset
from unweave.data.batches import Batch, Batches
from unweave.errors import ArgumentError
from unweave.methods.labelled import LabelledMethod
from unweave.methods.method import Encodes, EvidenceBound, LabelMode, Method, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import Stage
from unweave.methods.stages.first_stage import FirstStage, check_same_data, first_weights
from unweave.methods.stages.y_batches import YBatch, YBatches, has_fixed_y
from unweave.methods.vae.likelihoods import Bernoulli, Gaussian, Likelihood
from unweave.networks import ConvEncoder, MLPEncoder, initialise
from unweave.networks.adain import AdaINDecoder, AdaINGenerator
from unweave.networks.adain_mlp import AdaINMLP
from unweave.networks.dcgan import ImageGenerator
from unweave.objectives import kl_to_standard_normal, reparameterise, standard_noise
from unweave.parameters import Count, NonNegative

VECTOR_VARIANCE = 0.01  # with which the likelihood of vectors begins; it is learned


class StagePass(NamedTuple):
    """A forward pass of the second stage: images (n, C, H, W), y alike, q(z|x,y), and the decoder's output for x."""

    images: Tensor
    y: Tensor
    posterior: Posterior
    output: Tensor


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

    The residual encoder R reads x - y and gives q(z|x,y); it has the layers of the first stage's encoder, as neither
    the paper nor its code says more than that it is one. The decoder G reads y and takes z by adaptive instance
    normalisation: :class:`~unweave.networks.adain.AdaINDecoder`. The codes have the parts "c", of the first stage, and
    "z". Images are squares of 28, 32, 64 or 128 pixels, with a Bernoulli likelihood.

    Vectors, such as curves, have fully connected layers, :class:`~unweave.networks.adain_mlp.AdaINMLP`, and a Gaussian
    likelihood of one variance, which is learned. On a supervised first stage, ``conditional_gaussian``, c are labels:
    :class:`~unweave.methods.stages.supervised_ms_vae.SupervisedMSVAE`. Such stages can stand on earlier ones, and an
    MS-VAE can be the first stage of another: there can be any number.

    Parameters
    ----------
    image_shape
        (H, W, C) as stored.
    first
        the first stage, any method that encodes and decodes. ``create`` takes its run, the run's folder, or a mapping
        of settings with which ``train`` trains it first.
    latent_size
        |Z|; the paper has 5 on Cars3D and 10 on SmallNORB.
    y_from
        what y is decoded from in training: the "mean" of q(c|x), or a "draw" from it. Elsewhere it is the mean.
    num_y
        of draws, how many each image has, once and for all: 1 in the paper's measurements, 10 on CelebA (appendix I).
        None: a new draw at every step.
    modulation
        how z enters G: per "channel" as in the paper, or per channel and "position" as in its code.
    width
        channels of G's first convolution, 64 in the paper; for vectors, a fourth of the width of each layer.
    condition
        what the decoder reads next to z: "y"; "c" of the first stage instead (M3 of the paper's ablations); or c in
        "concatenation" with z, without AdaIN (M2): :class:`~unweave.networks.dcgan.ImageGenerator`.
    encode_from
        what the encoder reads: the "residual" x - y, or the "image" x.
    beta
        the weight of the KL.
    first_part
        the name of the first stage's part of the codes. The paper's M5 learns "z" first, and then c.
    keep_y
        where a row has the same y at every step, compute it once and keep it on disk:
        :mod:`unweave.methods.stages.y_batches`. It is computed at every step where the decoder reads c.
    other_data
        allow a first stage that was trained on other data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> first = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, steps=1, batch_size=2)
    >>> method = uw.methods.create("ms_vae", data, first=first, latent_size=2, width=4)
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
        num_y: Count | None = None,
        modulation: Literal["channel", "position"] = "channel",
        width: Count = 64,
        condition: Literal["y", "c", "concatenation"] = "y",
        encode_from: Literal["residual", "image"] = "residual",
        beta: NonNegative = 1.0,
        first_part: Literal["c", "z"] = "c",
        keep_y: bool = True,
        other_data: bool = False,
    ) -> None:
        super().__init__()
        if num_y is not None and y_from == "mean":
            raise ArgumentError("num_y", num_y, "needs y_from='draw': there is one mean of each image")
        if num_y is not None and condition != "y":
            raise ArgumentError("num_y", num_y, "needs condition='y': the decoder reads no y")
        self.first = FirstStage(first, image_shape, may_be_supervised=True)
        self.latent_size, self.y_from, self.num_y, self.other_data = latent_size, y_from, num_y, other_data
        self.condition, self.encode_from, self.beta, self.keep_y = condition, encode_from, beta, keep_y
        self.first_part, self.own_part = first_part, {"c": "z", "z": "c"}[first_part]
        if len(image_shape) not in (1, 3):
            raise ArgumentError("data", f"observations {tuple(image_shape)}", "needs images or vectors")
        is_image = len(image_shape) == 3
        if not is_image and condition != "y":
            raise ArgumentError(
                "condition", condition, f"needs images; vectors {tuple(image_shape)} have 'y'"
            )
        self.likelihood: Likelihood = Bernoulli() if is_image else Gaussian(VECTOR_VARIANCE, learned=True)
        self.encoder: ConvEncoder | MLPEncoder
        if is_image:
            self.encoder = ConvEncoder(image_shape, latent_size)
        else:
            self.encoder = MLPEncoder(image_shape, latent_size, (4 * width, 4 * width))
        code_size = self.first.code_size
        self.decoder: AdaINDecoder | AdaINMLP | AdaINGenerator | ImageGenerator
        if not is_image:
            self.decoder = AdaINMLP(image_shape[0], latent_size, (4 * width,) * 3, modulation)
        elif condition == "y":
            self.decoder = AdaINDecoder(image_shape, latent_size, modulation, width)
        elif condition == "c":
            self.decoder = AdaINGenerator(code_size, latent_size, image_shape, modulation, width)
        else:
            self.decoder = ImageGenerator(code_size + latent_size, image_shape, normalise=False, width=width)
        self.initialise(0)

    @classmethod
    def kind_for(cls, settings: Mapping[str, Any]) -> type[Method]:
        """A :class:`SupervisedMSVAE` where the codes of the first stage are labels."""
        first = settings.get("first")
        if not isinstance(first, LabelledMethod) or isinstance(first, Encodes):
            return cls
        from unweave.methods.stages.supervised_ms_vae import SupervisedMSVAE

        return SupervisedMSVAE

    # --- using a trained model ------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, slice]:
        """The named parts of a code: c of the first stage, and z (z and c, where z is the first stage's)."""
        size = self.first.code_size
        return {self.first_part: slice(0, size), self.own_part: slice(size, size + self.latent_size)}

    @property
    def noise_correlation(self) -> float | None:
        """As of the first stage, whose noise is independent, as that of z is."""
        return self.first.method.noise_correlation

    def encode(self, images: Tensor) -> Posterior:
        """q(c|x) and q(z|x,y) of images (n, C, H, W), side by side; y is that of the mean of c."""
        c = self.first.encode(images)
        return joined(c, self.encode_details(images, self.first.decode(c.mean)))

    def decode(self, codes: Tensor) -> Tensor:
        """The expected images (n, C, H, W) of codes (n, |C| + |Z|)."""
        return self.likelihood.mean(self._output(None, *self._split(codes)))

    def encode_first(self, images: Tensor) -> Posterior:
        """q(c|x) of images (n, C, H, W), of the first stage alone."""
        return self.first.encode(images)

    def encode_details(self, images: Tensor, y: Tensor) -> Posterior:
        """q(z|x,y) of images (n, C, H, W) and of y alike: that of the mean of c, or of any draw."""
        return Posterior(*self.encoder(images - y if self.encode_from == "residual" else images))

    def decode_first(self, codes: Tensor) -> Tensor:
        """y (n, C, H, W) of codes (n, |C| + |Z|): what the first stage alone makes of them."""
        return self.first.decode(self._split(codes)[0])

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """y and x (n, C, H, W) of codes (n, |C| + |Z|): without and with what z adds."""
        return {"y": self.decode_first(codes), "x": self.decode(codes)}

    def refine(self, y: Tensor, z: Tensor) -> Tensor:
        """G(y, z): the expected images (n, C, H, W) of any images y alike and codes z (n, |Z|).

        A decoder that reads c instead of y gets the mean code that the first stage gives y.
        """
        if self.first_part == "z":
            raise ArgumentError("first_part", "z", "z is the first stage's: there is none to refine y with")
        c = None if self.condition == "y" else self.first.encode(y).mean
        return self.likelihood.mean(self._output(y, c, z))

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """The expected images (n, C, H, W) of n codes: c from the first stage's prior, z from N(0, I).

        A decoder that reads c gets it from N(0, I), as VAEs have it, or labels as they are distributed in the data.
        """
        if self.condition == "y":
            y = self.first.sample(n, generator)
            z = torch.randn(n, self.latent_size, generator=generator, dtype=y.dtype, device=y.device)
            return self.refine(y, z)
        like = next(self.parameters())
        size = self.first.code_size + self.latent_size
        codes = torch.randn(n, size, generator=generator, dtype=like.dtype, device=like.device)
        if self.first.supervised:
            codes[:, self.parts[self.first_part]] = self.first.sample_codes(n, generator)
        return self.decode(codes)

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
        result = self._forward(images, self.first.decode(c.mean), c.mean, generator)
        kl = kl_to_standard_normal(*result.posterior)
        return EvidenceBound(
            joined(c, result.posterior),
            self.likelihood(result.output, images),
            torch.cat([torch.zeros_like(c.mean), kl], dim=1),
        )

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> StagePass:
        """One forward pass; the first stage takes no part in its gradient."""
        if isinstance(batch, YBatch):
            return self._forward(batch.images, batch.y, None, generator)
        with torch.no_grad():
            posterior = self.first.encode(batch.images)
            c = posterior.mean
            if self.y_from == "draw":
                c = reparameterise(*posterior, standard_noise(c, generator=generator))
            y = self.first.decode(c)
        return self._forward(batch.images, y, c, generator)

    def loss(self, result: StagePass) -> Terms:
        """-log p(x|z,y), for images cross entropy, summed over pixels, and beta KL(q(z|x,y) || N(0, I))."""
        kl = kl_to_standard_normal(*result.posterior).sum(1).mean()
        return Terms.of(
            reconstruction=(self.likelihood(result.output, result.images), 1.0), kl=(kl, self.beta)
        )

    def players(self) -> list[Player]:
        """The second stage's networks, which are one player."""
        networks = (self.encoder, self.decoder, self.likelihood)
        return [Player("model", [weight for one in networks for weight in one.parameters()], self.loss)]

    def initialise(self, seed: int) -> None:
        """Draw the second stage's weights anew (Glorot uniform, zero bias); the first stage keeps its own."""
        generator = torch.Generator().manual_seed(seed)
        for network in (self.encoder, self.decoder):
            initialise(network, generator)
        if isinstance(self.likelihood, Gaussian):
            with torch.no_grad():
                self.likelihood.log_variance.fill_(math.log(VECTOR_VARIANCE))

    def batches(self, data: Dataset) -> Batches:
        """Images of ``data`` with their y, where that is kept.

        The data must be what the first stage was trained on, unless ``other_data`` was asked for.
        """
        self._check_first_data(data)
        batches = super().batches(data)
        if self.num_y is not None and not has_fixed_y(data, self.y_from, self.num_y):
            raise ArgumentError(
                "num_y", self.num_y, f"{data.name} has no images that stay the same: needs None"
            )
        if self.condition != "y":
            return batches
        weights = partial(first_weights, self) if self.keep_y else None
        return YBatches(batches, data, self.first, self.y_from, self.num_y, weights)

    def _check_first_data(self, data: Dataset) -> None:
        if not self.other_data:
            check_same_data(self.spec.hyperparameters["first"], data)

    def _forward(
        self, images: Tensor, y: Tensor, c: Tensor | None, generator: torch.Generator | None
    ) -> StagePass:
        posterior = self.encode_details(images, y)
        z = reparameterise(*posterior, standard_noise(posterior.mean, generator=generator))
        return StagePass(images, y, posterior, self._output(y, c, z))

    def _output(self, y: Tensor | None, c: Tensor | None, z: Tensor) -> Tensor:
        """The decoder's output from z and from y or c, whichever it reads; y is that of c where it is None."""
        if isinstance(self.decoder, AdaINDecoder | AdaINMLP):
            given = y if y is not None else self.first.decode(_known(c))
            output: Tensor = self.decoder(given, z)
        elif isinstance(self.decoder, AdaINGenerator):
            output = self.decoder(_known(c), z)
        else:
            output = self.decoder(torch.cat([_known(c), z], dim=1))
        return output

    def _split(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The first stage's part of codes, and this stage's."""
        parts = self.parts
        return codes[:, parts[self.first_part]], codes[:, parts[self.own_part]]


def _known(c: Tensor | None) -> Tensor:
    """c, which callers give where the decoder reads it."""
    assert c is not None
    return c


def joined(c: Posterior, z: Posterior) -> Posterior:
    """Two posteriors side by side."""
    mean = torch.cat([c.mean, z.mean], dim=1)
    return Posterior(mean, torch.cat([c.log_variance.expand_as(c.mean), z.log_variance], dim=1))
