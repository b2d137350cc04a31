"""How far reconstructions are from their images, pixel by pixel."""

from __future__ import annotations

from unweave.evaluation.trained import Trained
from unweave.metrics.metric import Metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Seed


def _reconstruction_error(trained: Trained, *, num_images: Count = 5_000, seed: Seed = 0) -> Score:
    r"""L1 and L2 errors of images that are decoded from mean codes.

    .. math:: L_1 = E_x \sum_i |x_i - x'_i|, \qquad L_2 = E_x \sum_i (x_i - x'_i)^2, \qquad x' = decode(E_{q(z|x)}[z])

    over pixels in [0, 1]. The value is L2. "Improving the reconstruction of disentangled representation learners via
    multi-stage modelling" (2020), appendix J, reports both without an equation; these are the sums that
    ``unsupervised`` has of methods with an evidence bound. The means per pixel compare between sizes of images.

    Parameters
    ----------
    num_images
        how many images the means are taken over, all different; a smaller data set is used whole.

    Returns
    -------
    Score
        ``details``: ``l1``, ``l2``; ``l1_per_pixel``, ``l2_per_pixel``, divided by the number of pixels and channels;
        ``num_images``.
    """
    which = trained.choose_images(num_images)
    l1 = l2 = 0.0
    size = 1
    for images, posterior in trained.encoded(which):
        difference = (trained.method.decode(posterior.mean) - images).flatten(1).double()
        l1 += difference.abs().sum().item()
        l2 += difference.square().sum().item()
        size = difference.shape[1]
    l1, l2 = l1 / len(which), l2 / len(which)
    details = {"l1": l1, "l2": l2, "l1_per_pixel": l1 / size, "l2_per_pixel": l2 / size}
    return Score(l2, {**details, "num_images": len(which)}, {"num_images": num_images, "seed": seed})


reconstruction_error = Metric(
    "reconstruction_error",
    _reconstruction_error,
    label="L2",
    higher_is_better=False,
    takes="method",
    factors="none",
    parts={"l1": "L1", "l2": "L2", "l1_per_pixel": "L1 per pixel", "l2_per_pixel": "L2 per pixel"},
    show_parts=True,
    sizes=("num_images",),
    capabilities=("encodes", "decodes"),
    in_all=False,
    images=lambda params: int(2 * params["num_images"]),
)
