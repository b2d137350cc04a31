"""CGAN: a GAN whose images are given labels (Mirza & Osindero 2014), the multi-stage paper's supervised baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.data.batches import Batch
from unweave.errors import ArgumentError
from unweave.methods.gan.collapse import check_batch_size, collapse_problems
from unweave.methods.gan.generator import Generator
from unweave.methods.gan.terms import cross_entropy_terms
from unweave.methods.label_layout import LabelLayout
from unweave.methods.labelled import LabelledMethod
from unweave.methods.method import OptimiserSettings, Player, Terms
from unweave.methods.registry import register_method
from unweave.networks.dcgan import ImageDiscriminator, ImageGenerator
from unweave.networks.weights import frozen
from unweave.objectives.adversarial import generator_loss
from unweave.parameters import Count, Decay

ADAM = OptimiserSettings(1e-4, (0.5, 0.999))


class LabelledGame(NamedTuple):
    """One forward pass: real images with their labels u (n, d), and the images generated for these labels."""

    real: Tensor
    u: Tensor
    fake: Tensor


@register_method(
    "cgan",
    label="CGAN",
    paper="Mirza & Osindero 2014",
    strength="noise_size",
    strength_label="|Z|",
    color="#56B4E9",
    marker="X",
    order=30,
    labels="all",
)
class CGAN(LabelledMethod):
    """GAN of images given labels: generator and discriminator both see the labels.

    The generator G reads labels c and noise z ~ N(0, I). The discriminator D sees an image and, as constant channels
    next to it, the labels. With pairs (x, c) of the data they minimise

        D:  -1/2 (E[log D(x, c)] + E[log(1 - D(G(c, z), c))]),        G:  -E[log D(G(c, z), c)]

    The networks are those of DCGAN: :mod:`unweave.networks.dcgan`. Adam 1e-4, betas (0.5, 0.999), for both, as for the
    multi-stage paper's other GANs; the learning rate of ``train`` is not used.

    The code of an image is (c, z), and there is no encoder: :meth:`decode` takes labels, or labels and noise. A run
    logs ``discriminator_accuracy``, ``diversity`` and ``collapsed``: see
    :func:`~unweave.methods.gan.collapse.collapse_terms`.

    Parameters
    ----------
    image_shape
        (H, W, C).
    labels
        which entries of c belong to which label; ``create`` takes the labels themselves.
    noise_size
        |Z|; the authors' code has 100.
    width
        channels of the convolution next to the image.
    ema
        the weight of the past in the average of the generator's weights that images are generated with; 0: none.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8), {"digit": [0, 1, 2, 3]})
    >>> method = uw.methods.create("cgan", data, labels={"encoding": "one_hot"}, width=4)
    >>> c = method.labels_for(data).known([2, 2])
    >>> method.decode(torch.from_numpy(c)).shape, method.sample(5).shape
    (torch.Size([2, 1, 28, 28]), torch.Size([5, 1, 28, 28]))
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        *,
        labels: LabelLayout,
        noise_size: Count = 100,
        width: Count = 64,
        ema: Decay = 0.0,
    ) -> None:
        super().__init__(labels)
        self.noise_size = noise_size
        self.generator = Generator(ImageGenerator(labels.width + noise_size, image_shape, width=width), ema)
        self.discriminator = ImageDiscriminator(image_shape, labels.width, width=width)

    # --- training ---------------------------------------------------------------------------------

    def begin(self, batch: Batch, step: int, generator: torch.Generator) -> LabelledGame:
        """Generate an image for the labels of each image of the batch."""
        check_batch_size(batch)
        labelled = self.label_supervision.check_batch(batch)
        self.generator.update_average()
        noise = self._noise(len(batch), generator)
        fake = self.generator(torch.cat([labelled.u, noise], dim=1))
        return LabelledGame(labelled.images, labelled.u, fake)

    def players(self) -> list[Player]:
        """The discriminator, and then the generator."""
        return [
            Player("discriminator", list(self.discriminator.parameters()), self.discriminator_terms, ADAM),
            Player("model", list(self.generator.network.parameters()), self.generator_terms, ADAM),
        ]

    def discriminator_terms(self, game: LabelledGame) -> Terms:
        """The discriminator's cross entropy, and the signs of a collapse."""
        condition = label_channels(game.u, game.real)
        real = self.discriminator(game.real, condition)
        fake = self.discriminator(game.fake.detach(), condition)
        return cross_entropy_terms(real, fake, game.real, game.fake)

    def generator_terms(self, game: LabelledGame) -> Terms:
        """The generator's loss; no gradient reaches the discriminator's weights."""
        with frozen(self.discriminator):
            logits = self.discriminator(game.fake, label_channels(game.u, game.fake))
        return Terms.of(generator=(generator_loss(logits), 1.0))

    def problems(self, records: Sequence[Mapping[str, float]]) -> list[str]:
        """Whether the generator has collapsed, or the discriminator has won."""
        return collapse_problems(records)

    # --- capabilities -----------------------------------------------------------------------------

    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, C, H, W) of labels (n, d), with noise 0, the mean; or of labels and noise (n, d + |Z|)."""
        d, total = self.label_size, self.label_size + self.noise_size
        if codes.ndim != 2 or codes.shape[1] not in (d, total):
            message = f"needs labels (n, {d}), or labels and noise (n, {total})"
            raise ArgumentError("codes", f"a tensor of shape {tuple(codes.shape)}", message)
        return self.generator.generate(F.pad(codes, (0, total - codes.shape[1])))

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` images, with labels as they are distributed in the data."""
        return self.generate(*self.sample_inputs(n, generator))

    def sample_inputs(self, n: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Labels (n, d) as they are distributed in the data, and noise (n, |Z|)."""
        return self.sample_labels(n, generator), self._noise(n, generator)

    def generate(self, codes: Tensor, noise: Tensor) -> Tensor:
        """The images (n, C, H, W) of labels (n, d) and noise (n, |Z|)."""
        return self.generator.generate(torch.cat([codes, noise], dim=1))

    @property
    def categories(self) -> tuple[slice, ...]:
        """The entries of each one-hot label."""
        return self.label_layout.categories

    def _noise(self, n: int, generator: torch.Generator | None) -> Tensor:
        """z (n, |Z|) from N(0, I)."""
        like = self.label_draws
        return torch.randn(n, self.noise_size, generator=generator, dtype=like.dtype, device=like.device)


def label_channels(u: Tensor, images: Tensor) -> Tensor:
    """Labels (n, d) as constant channels (n, d, H, W) next to images (n, C, H, W).

    Examples
    --------
    >>> label_channels(torch.tensor([[0.0, 1.0]]), torch.zeros(1, 3, 2, 2))[0, 1]
    tensor([[1., 1.], [1., 1.]])
    """
    return u[:, :, None, None].expand(-1, -1, *images.shape[2:])
