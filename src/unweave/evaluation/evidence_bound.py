"""The evidence lower bound of a model, and its parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.evaluation.trained import Trained
from unweave.metrics.metric import Metric
from unweave.metrics.result import Score
from unweave.parameters import Count

_BATCH = 256


def _unsupervised(trained: Trained, *, num_images: Count = 5_000, seed: int = 0) -> Score:
    r"""The evidence lower bound of a model, and its parts, averaged over random images.

    .. math:: \log p(x) \ge E_{q(z|x)}[\log p(x|z)] - KL(q(z|x) \| p(z)) = -\mathit{reconstruction} - \mathit{kl}

    An encoder that takes labels gets them from the source that ``evaluate(labels=…)`` names; the KL is then to p(z|u).
    With "given" it is a bound on log p(x|u). With "predicted" it is NaN, as it would need q(u|x) and p(u) as well; with
    "unknown" the KL is NaN too, as the mixture over labels has no closed form.

    Parameters
    ----------
    num_images
        how many images the means are taken over.

    Returns
    -------
    Score
        ``details``: ``reconstruction`` (-log p(x|z) of sampled codes, in nats), ``kl`` (exact for correlated noise
        too), ``kl_per_code`` (D,), ``elbo``; and of images decoded from mean codes ``l1`` and ``l2``, the mean over
        images of sum |x - x'| and of sum (x - x')^2 over pixels.
    """
    import torch

    from unweave.data.batches import to_tensor
    from unweave.methods import code_size
    from unweave.objectives import correlation_constant

    method, data, labels, rng = trained
    given = method.labels_for(data) if labels == "given" else None
    device = next(method.parameters()).device
    generator = torch.Generator(device=device).manual_seed(seed)
    sums = {"reconstruction": 0.0, "l1": 0.0, "l2": 0.0}
    kl = torch.zeros(code_size(method), device=device, dtype=torch.float64)
    with torch.inference_mode():
        for start in range(0, num_images, _BATCH):
            n = min(_BATCH, num_images - start)
            which = data.sample_rows(n, rng) if data.finite else data.sample_factors(n, rng)
            images = to_tensor(data.images(which, rng)).to(device)
            u = None if given is None else torch.from_numpy(given.known(which)).to(device)
            bound = method.evidence_bound(images, generator, labels, u)
            sums["reconstruction"] += n * bound.reconstruction.item()
            difference = (method.decode(bound.posterior.mean) - images).flatten(1)
            sums["l1"] += difference.abs().sum().item()
            sums["l2"] += difference.square().sum().item()
            kl += bound.kl.sum(0)
    details: dict[str, Any] = {name: total / num_images for name, total in sums.items()}
    per_code = (kl / num_images).cpu().numpy()
    details["kl"] = float(per_code.sum()) + correlation_constant(
        method.noise_correlation or 0.0, len(per_code)
    )
    details["kl_per_code"] = np.asarray(per_code)
    details["elbo"] = np.nan if labels == "predicted" else -details["reconstruction"] - details["kl"]
    return Score(details["elbo"], details, {"num_images": num_images})


unsupervised = Metric(
    "unsupervised",
    _unsupervised,
    label="ELBO",
    takes="method",
    factors="none",
    paper=True,
    parts={"reconstruction": "Reconstruction", "kl": "KL", "elbo": "ELBO", "l1": "L1", "l2": "L2"},
    sampled_parts=("", "reconstruction", "kl", "elbo"),
    sizes=("num_images",),
    capabilities=("encodes", "decodes", "evidence_bound"),
    images=lambda params: int(
        3 * params["num_images"]
    ),  # an encoder's pass, and a decoder's for each kind of code
)
