"""The density of images under a model, in nats and in bits per dimension."""

from __future__ import annotations

import math
from typing import Any

from unweave.evaluation.trained import Trained
from unweave.metrics.metric import Metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Seed

_BATCH = 500


def _log_density(
    trained: Trained, *, num_images: Count = 10_000, data: str | None = None, seed: Seed = 0
) -> Score:
    r"""The mean log density of images, in nats.

    .. math:: E_x[\log p(v(x))], \qquad
        \mathit{bits} = -\frac{1}{D \log 2} E_x\left[\log p(v(x)) + \log \left|\frac{dv}{dk}\right|\right]

    v are the values that the method models: of images the logits of pixels with uniform noise, drawn once per image
    from ``seed``. Nats are of v, as the multi-stage paper and Papamakarios et al. (2017) report them; another
    preprocessing has other nats. Bits per dimension are of pixels k in [0, 256): those compare between methods, and
    bound the bits of a code for the bytes from above. For vectors v is the vector itself, and bits are those of its
    density.

    Parameters
    ----------
    num_images
        how many images the mean is taken over, all different; a smaller data set is used whole.
    data
        the name of another data set to measure on, such as "mnist_test"; None: the one that ``evaluate`` was given.

    Returns
    -------
    Score
        ``details``: ``standard_error`` of the mean over images, ``bits_per_dimension`` and ``num_images``.
    """
    import torch

    from unweave.data import load
    from unweave.data.batches import to_tensor
    from unweave.methods import HasPixelDensity

    if data is not None:
        trained = trained._replace(data=load(data))
        trained.method.check_data(trained.data)
    method, which = trained.method, trained.choose_images(num_images)
    densities, of_pixels = [], []
    with torch.inference_mode():
        for start in range(0, len(which), _BATCH):
            batch = to_tensor(trained.data.images(which[start : start + _BATCH], trained.rng))
            images = batch.to(trained.device)

            def noise(images: Any = images, start: int = start) -> torch.Generator:
                return torch.Generator(images.device).manual_seed(seed * 1_000_003 + start)

            density = method.log_density(images, noise())
            densities.append(density.double())
            volume = (
                method.log_volume(images, noise()) if isinstance(method, HasPixelDensity) else torch.zeros(1)
            )
            of_pixels.append(density.double() + volume.to(density.device))
    nats = torch.cat(densities)
    size = math.prod(trained.data.image_shape)
    details = {
        "standard_error": float(nats.std()) / math.sqrt(len(nats)) if len(nats) > 1 else math.nan,
        "bits_per_dimension": -float(torch.cat(of_pixels).mean()) / (size * math.log(2)),
        "num_images": len(nats),
    }
    return Score(float(nats.mean()), details, {"num_images": num_images, "data": data, "seed": seed})


log_density = Metric(
    "log_density",
    _log_density,
    label="log density",
    takes="method",
    factors="none",
    parts={"bits_per_dimension": "bits per dimension", "standard_error": "standard error"},
    sizes=("num_images",),
    capabilities=("density",),
    in_all=False,
    images=lambda params: int(10 * params["num_images"]),
)
