"""What can be measured of a VAE without factors: reconstruction, KL, evidence lower bound."""

from __future__ import annotations

import numpy as np
import torch

from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.data.factors import Rng
from unweave.methods import VAE, LabelMode
from unweave.metrics import Score
from unweave.objectives import correlation_constant
from unweave.parameters import Count

_BATCH = 256


def unsupervised(
    method: VAE,
    data: Dataset,
    rng: Rng,
    *,
    num_images: Count = 5_000,
    seed: int = 0,
    labels: LabelMode | None = None,
) -> Score:
    """The evidence lower bound -reconstruction - KL, and its parts, averaged over random images.

    ``details``: ``reconstruction`` (-log p(x|z) of sampled codes, in nats), ``kl`` (exact, also for the
    correlated posterior), ``kl_per_code`` (D,), ``elbo``, and of images decoded from mean codes ``l1`` and
    ``l2``: the mean over images of sum |x - x'| and of sum (x - x')^2 over pixels.

    An encoder that takes labels gets them as ``labels`` says; the KL is then to p(z|u). With "given" the bound is one
    on log p(x|u), with "predicted" it is NaN, as it would need q(u|x) and p(u) as well, and with "unknown" the KL is
    NaN, too: the mixture over labels has no closed form.
    """
    given = method.labels_for(data) if labels == "given" else None
    device = next(method.parameters()).device
    generator = torch.Generator(device=device).manual_seed(seed)
    sums = {"reconstruction": 0.0, "l1": 0.0, "l2": 0.0}
    kl = torch.zeros(method.spec.latent_size, device=device, dtype=torch.float64)
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
    details = {name: total / num_images for name, total in sums.items()}
    per_code = (kl / num_images).cpu().numpy()
    total_kl = float(per_code.sum()) + correlation_constant(method.noise_correlation, method.spec.latent_size)
    elbo = np.nan if labels == "predicted" else -details["reconstruction"] - total_kl
    return Score(
        elbo,
        {**details, "kl": total_kl, "kl_per_code": np.asarray(per_code), "elbo": elbo},
        {"num_images": num_images},
    )
