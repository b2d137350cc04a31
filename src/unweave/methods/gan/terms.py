"""The discriminator's terms, which GANs with a cross entropy share."""

from __future__ import annotations

from torch import Tensor

from unweave.methods.gan.collapse import collapse_terms, threshold_accuracy
from unweave.methods.method import Terms
from unweave.objectives.adversarial import real_fake_loss


def cross_entropy_terms(real_logits: Tensor, fake_logits: Tensor, real: Tensor, fake: Tensor) -> Terms:
    """The discriminator's cross entropy, its accuracy, and the signs of a collapse.

    Parameters
    ----------
    real_logits, fake_logits
        (n,): what the discriminator makes of the real and of the generated images.
    real, fake
        the images (n, C, H, W).

    Examples
    --------
    >>> import torch
    >>> images = torch.rand(4, 1, 8, 8)
    >>> terms = cross_entropy_terms(torch.ones(4), -torch.ones(4), images, images)
    >>> terms.values["discriminator_accuracy"], list(terms.weights.values())
    (tensor(1.), [1.0, 0.0, 0.0, 0.0])
    """
    terms = Terms.of(
        discriminator=(real_fake_loss(real_logits, fake_logits), 1.0),
        discriminator_accuracy=(threshold_accuracy(real_logits, fake_logits), 0.0),
    )
    terms.add(collapse_terms(real, fake))
    return terms
