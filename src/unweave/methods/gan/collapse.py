"""Signs that a GAN's training fails, as values of weight 0 that a run logs next to its losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from unweave.data.batches import Batch
from unweave.errors import ArgumentError
from unweave.methods.method import Terms

LEAST_DIVERSITY = 0.5  # generated images that differ half as much as real ones do
MOST_ACCURACY = 0.99  # of a discriminator that no generated image misleads


@torch.no_grad()
def collapse_terms(real: Tensor, fake: Tensor) -> Terms:
    """How diverse generated images are, and whether they count as collapsed.

    ``diversity`` is :func:`relative_diversity`, near 1 for a good generator. ``collapsed`` is 1 where diversity is
    below 0.5, and else 0. A new generator, whose images are all grey, counts as collapsed until it has learned.
    Distances of pixels do not show everything: a generator with one image per category is diverse.

    Parameters
    ----------
    real, fake
        images (n, C, H, W), n >= 2.

    Examples
    --------
    >>> import torch
    >>> images = torch.rand(8, 1, 4, 4)
    >>> collapse_terms(images, images[:1].expand(8, 1, 4, 4)).values
    {'diversity': tensor(0.), 'collapsed': tensor(1.)}
    """
    diversity = relative_diversity(real, fake)
    collapsed = (diversity < LEAST_DIVERSITY).to(diversity)
    return Terms.of(diversity=(diversity, 0.0), collapsed=(collapsed, 0.0))


def relative_diversity(real: Tensor, fake: Tensor) -> Tensor:
    """Mean Euclidean distance of two generated images, relative to that of two real ones.

    Examples
    --------
    >>> import torch
    >>> images = torch.rand(8, 1, 4, 4)
    >>> relative_diversity(images, 0.5 * images)
    tensor(0.5000)
    """
    return _mean_distance(fake) / _mean_distance(real).clamp_min(1e-6)


@torch.no_grad()
def threshold_accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """The share of images that a discriminator's logits (n,) classify rightly: real > 0, fake < 0.

    Examples
    --------
    >>> import torch
    >>> threshold_accuracy(torch.tensor([1.0, -1.0]), torch.tensor([-1.0, -2.0]))
    tensor(0.7500)
    """
    return torch.cat([real > 0, fake < 0]).float().mean()


@torch.no_grad()
def ranking_accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """The share of pairs that a critic orders rightly, from its values (n,), whose zero means nothing.

    Examples
    --------
    >>> import torch
    >>> ranking_accuracy(torch.tensor([5.0, 3.0]), torch.tensor([4.0, 2.0]))
    tensor(0.7500)
    """
    return (real[:, None] > fake[None, :]).float().mean()


def collapse_problems(records: Sequence[Mapping[str, float]]) -> list[str]:
    """What the records of a GAN's run say went wrong in its last quarter: what training was like before has passed.

    A generator has collapsed if more than half of the records say so. It learns nothing if the discriminator is right
    about 99 % of the images or more.

    Parameters
    ----------
    records
        with ``diversity``, ``collapsed`` and the accuracy of the discriminator or critic.

    Examples
    --------
    >>> collapse_problems([{"step": 8.0, "diversity": 0.1, "collapsed": 1.0, "discriminator_accuracy": 0.6}])
    ['the generator has collapsed: its images differ 0.10 times as much as real ones (less than 0.5)']
    """
    last = [record for record in records if "collapsed" in record]
    last = last[-max(1, len(last) // 4) :]
    if not last:
        return []
    problems = []
    diversity = [record["diversity"] for record in last]
    if sum(record["collapsed"] for record in last) > len(last) / 2:
        times = sum(diversity) / len(diversity)
        problems.append(
            f"the generator has collapsed: its images differ {times:.2f} times as much as real ones "
            f"(less than {LEAST_DIVERSITY:g})"
        )
    accuracy = [record["discriminator_accuracy"] for record in last if "discriminator_accuracy" in record]
    if accuracy and sum(accuracy) / len(accuracy) >= MOST_ACCURACY:
        problems.append(
            f"the discriminator is right about {sum(accuracy) / len(accuracy):.1%} of the images: "
            "the generator learns little from it"
        )
    return problems


def check_batch_size(batch: Batch) -> None:
    """Refuse a batch of one image, which has no diversity, and no deviation to normalise by.

    Examples
    --------
    >>> import torch
    >>> check_batch_size(Batch(torch.zeros(1, 1, 8, 8)))
    Traceback (most recent call last):
    unweave.errors.ArgumentError: batch_size = 1: needs two or more: the networks normalise by batch
    """
    if len(batch) < 2:
        raise ArgumentError("batch_size", len(batch), "needs two or more: the networks normalise by batch")


def _mean_distance(images: Tensor) -> Tensor:
    return torch.pdist(images.flatten(1).float()).mean()
