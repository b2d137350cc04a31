"""MS-GAN: details for the images of a disentangled model by a conditional GAN (multi-stage paper, appendices E and F).

A first stage, C -> Y, is trained and frozen. The second, (Y, Z) -> X, is a conditional GAN whose condition is the
image y. Supervised, C are labels and the first stage is a network that was trained to predict the image of a label;
unsupervised, C are the codes of a VAE with few of them (a beta-VAE of 6 latents on faces, of 2 on cars and chairs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from unweave.arrays import AnyArray, ArrayLike
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches
from unweave.data.supervision.labels import Labels
from unweave.errors import ArgumentError
from unweave.methods.gan.collapse import check_batch_size, collapse_problems
from unweave.methods.gan.generator import Generator
from unweave.methods.gan.terms import cross_entropy_terms
from unweave.methods.method import Encodes, Method, OptimiserSettings, Player, Posterior, Terms
from unweave.methods.registry import register_method
from unweave.methods.spec import Stage
from unweave.methods.stages.first_stage import FirstStage, check_same_data, first_weights
from unweave.methods.stages.y_batches import YBatch, YBatches
from unweave.networks import initialise
from unweave.networks.adain import AdaINDecoder
from unweave.networks.dcgan import ImageDiscriminator
from unweave.networks.weights import frozen
from unweave.objectives.adversarial import generator_loss
from unweave.parameters import Count, Decay

ADAM = OptimiserSettings(1e-4, (0.5, 0.999))


class StageGame(NamedTuple):
    """One forward pass: real images (n, C, H, W), y of their codes, and images generated from y and noise."""

    real: Tensor
    y: Tensor
    fake: Tensor


@register_method(
    "ms_gan",
    label="MS-GAN",
    paper="Multi-stage modelling 2020",
    strength="noise_size",
    strength_label="|Z|",
    color="#D55E00",
    marker="o",
    order=21,
    labels="none",
)
class MSGAN(Method):
    """conditional GAN of x given y; y is the image that a frozen first stage decodes.

    The generator G reads y and takes z ~ N(0, I) by adaptive instance normalisation:
    :class:`~unweave.networks.adain.AdaINDecoder`. The discriminator D sees an image and y, joined by channel. With
    pairs (x, y) of the data they minimise

        D:  -1/2 (E[log D(x, y)] + E[log(1 - D(G(y, z), y))]),        G:  -E[log D(G(y, z), y)]

    Adam 1e-4, betas (0.5, 0.999), for both, as in the authors' code, which has batches of 32; the learning rate of
    ``train`` is not used. The code of an image is c of the first stage, if that can encode: z has no encoder. A run
    logs ``discriminator_accuracy``, ``diversity`` and ``collapsed``: see
    :func:`~unweave.methods.gan.collapse.collapse_terms`.

    Parameters
    ----------
    image_shape
        (H, W, C); squares of 28, 32, 64 or 128 pixels.
    first
        the first stage: a method that encodes and decodes, or one that decodes labels. ``create`` takes its run, or
        the run's folder. With labels, the batches of this stage have those that the first was trained on.
    noise_size
        |Z|; the authors' code has 100.
    y_from
        what y is decoded from in training: the "mean" of q(c|x), or one "draw" from it. Labels are decoded as they are.
    modulation
        how z enters G: per "channel" as in the paper, or per channel and "position" as in its code.
    width
        channels of the convolutions next to the image.
    ema
        the weight of the past in the average of the generator's weights that images are generated with; 0: none.
    keep_y
        where y is the mean's, compute it once for each row and keep it on disk:
        :mod:`unweave.methods.stages.y_batches`. That of labels is computed at every step.
    other_data
        allow a first stage that was trained on other data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> first = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, steps=1, batch_size=2)
    >>> method = uw.methods.create("ms_gan", data, first=first, noise_size=2)
    >>> method.parts, method.sample(5).shape
    ({'c': slice(0, 3, None)}, torch.Size([5, 1, 28, 28]))
    """

    @classmethod
    def kind_for(cls, settings: Mapping[str, Any]) -> type[Method]:
        """An :class:`EncodingMSGAN` where the first stage encodes."""
        return EncodingMSGAN if isinstance(settings.get("first"), Encodes) else cls

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        first: Stage = None,
        noise_size: Count = 100,
        y_from: Literal["mean", "draw"] = "mean",
        modulation: Literal["channel", "position"] = "channel",
        width: Count = 64,
        ema: Decay = 0.0,
        keep_y: bool = True,
        other_data: bool = False,
    ) -> None:
        super().__init__()
        self.first = FirstStage(first, image_shape, may_be_supervised=True)
        self.noise_size, self.y_from, self.other_data = noise_size, y_from, other_data
        self.keep_y = keep_y
        self.generator = Generator(AdaINDecoder(image_shape, noise_size, modulation, width), ema)
        self.discriminator = ImageDiscriminator(image_shape, image_shape[2], width=width)
        self.initialise(0)

    # --- using a trained model ------------------------------------------------------------------------

    def decode(self, codes: Tensor) -> Tensor:
        """The images (n, C, H, W) of codes c (n, |C|), with noise 0, the mean."""
        return self.generate(codes, codes.new_zeros(len(codes), self.noise_size))

    def decode_stages(self, codes: Tensor) -> dict[str, Tensor]:
        """y of codes c (n, |C|), and x as :meth:`decode` has it."""
        y = self.first.decode(codes)
        return {"y": y, "x": self.refine(y, codes.new_zeros(len(codes), self.noise_size))}

    def refine(self, y: Tensor, z: Tensor) -> Tensor:
        """G(y, z): the images (n, C, H, W) of images y alike and noise z (n, |Z|)."""
        return self.generator.generate(y, z)

    def generate(self, codes: Tensor, noise: Tensor) -> Tensor:
        """The images (n, C, H, W) of codes c (n, |C|) and noise z (n, |Z|)."""
        return self.refine(self.first.decode(codes), noise)

    def sample_inputs(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """``n`` codes of the first stage, and as much noise."""
        codes = self.first.sample_codes(n, generator)
        return codes, self._noise(codes, generator)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images: y that the first stage samples, z from N(0, I)."""
        y = self.first.sample(n, generator)
        return self.refine(y, self._noise(y, generator))

    # --- training -------------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator | None = None) -> StageGame:
        """y of the batch's codes, and an image generated for each; the first stage takes no part in a gradient."""
        check_batch_size(batch)
        self.generator.update_average()
        kept = batch.y if isinstance(batch, YBatch) else None
        y = self.first.reconstruct_batch(batch, self.y_from, generator) if kept is None else kept
        return StageGame(batch.images, y, self.generator(y, self._noise(y, generator)))

    def players(self) -> list[Player]:
        """The discriminator, and then the generator."""
        return [
            Player("discriminator", list(self.discriminator.parameters()), self.discriminator_terms, ADAM),
            Player("model", list(self.generator.network.parameters()), self.generator_terms, ADAM),
        ]

    def discriminator_terms(self, game: StageGame) -> Terms:
        """The discriminator's cross entropy, and the signs of a collapse."""
        real = self.discriminator(game.real, game.y)
        fake = self.discriminator(game.fake.detach(), game.y)
        return cross_entropy_terms(real, fake, game.real, game.fake)

    def generator_terms(self, game: StageGame) -> Terms:
        """The generator's loss; no gradient reaches the discriminator's weights."""
        with frozen(self.discriminator):
            logits = self.discriminator(game.fake, game.y)
        return Terms.of(generator=(generator_loss(logits), 1.0))

    def problems(self, records: Sequence[Mapping[str, float]]) -> list[str]:
        """Whether the generator has collapsed, or the discriminator has won."""
        return collapse_problems(records)

    def initialise(self, seed: int) -> None:
        """Draw the second stage's weights anew (Glorot uniform, zero bias); the first stage keeps its own."""
        generator = torch.Generator().manual_seed(seed)
        for network in (self.generator, self.discriminator):
            initialise(network, generator)

    def batches(self, data: Dataset) -> Batches:
        """Images of ``data`` with their y, where that is kept, or with the labels of a supervised first stage.

        The data must be what the first stage was trained on unless ``other_data`` was asked for.
        """
        if not self.other_data:
            check_same_data(self.spec.hyperparameters["first"], data)
        batches = self.first.batches(data)
        if self.first.supervised:
            return batches
        weights = partial(first_weights, self) if self.keep_y else None
        return YBatches(batches, data, self.first, self.y_from, weights=weights)

    def _noise(self, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """z (n, |Z|) from N(0, I)."""
        return torch.randn(
            len(like), self.noise_size, generator=generator, dtype=like.dtype, device=like.device
        )

    # --- labels of a supervised first stage -----------------------------------------------------------

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that are the first stage's codes; None if it encodes images."""
        return self.first.labels_for(data)

    def take_labels(self, labels: Labels) -> None:
        """Refused: its labels are those of the first stage."""
        raise ArgumentError(
            "labels", type(labels).__name__, "are those that the first stage was created with"
        )

    @property
    def label_array(self) -> AnyArray | None:
        """The array of labels that the first stage was created with, and holds."""
        return self.first.label_array

    def remember_labels(self, array: ArrayLike) -> None:
        """Give the first stage again the array of labels that it was created with."""
        self.first.remember_labels(array)


class EncodingMSGAN(MSGAN):
    """MS-GAN on a first stage that encodes: an image has the code c.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> first = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, steps=1, batch_size=2)
    >>> type(uw.methods.create("ms_gan", data, first=first)).__name__
    'EncodingMSGAN'
    """

    @property
    def parts(self) -> Mapping[str, slice]:
        """One part: c of the first stage."""
        return {"c": slice(0, self.first.code_size)}

    @property
    def noise_correlation(self) -> float | None:
        """As of the first stage."""
        return self.first.method.noise_correlation

    @property
    def image_encoder(self) -> nn.Module:
        """That of the first stage."""
        return self.first.method.image_encoder

    def encode(self, images: Tensor) -> Posterior:
        """q(c|x) of images (n, C, H, W)."""
        return self.first.encode(images)
