"""What a page knows of each latent of a model: how much it is used, where its values lie, what depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unweave.arrays import AnyArray, FloatArray, SingleArray
from unweave.data.batches import to_tensor
from unweave.explorer.observations import Observations
from unweave.figures.traversal import decode_stages, device_of, using
from unweave.methods import (
    DecodesLabels,
    Encodes,
    EncodesWithLabels,
    GeneratesFromNoise,
    HasCategories,
    LabelledMethod,
    Method,
)
from unweave.methods.method import latent_labels
from unweave.objectives import usage

ACTIVE = 0.01  # nats: latents with a smaller KL, or codes with a smaller deviation, are not in use
BINS = 48  # of the aggregate posterior
_DRAWS = 8  # from each posterior
_PRIOR = 256  # codes, where there is no encoder
_SAME = 1e-6
_BATCH = 64


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of observations, or of a prior where a method does not encode.

    Parameters
    ----------
    mean, log_variance
        (n, D); log_variance is -inf for codes without noise.
    noise
        (n, E) draws of a method that generates from noise, else None.
    encoded
        whether they are those of the observations.
    """

    mean: SingleArray
    log_variance: SingleArray
    noise: SingleArray | None
    encoded: bool


def codes_of(method: Method, observations: Observations, seed: int = 0) -> Codes:
    """The codes with which a page starts.

    Examples
    --------
    >>> from unweave.explorer.observations import draw_observations
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> codes_of(method, draw_observations(data)).mean.shape
    (4, 2)
    """
    device = device_of(method)
    generator = torch.Generator(device).manual_seed(seed)
    noise: Tensor | None = None
    with using(method):
        if isinstance(method, GeneratesFromNoise):
            drawn, noise = method.sample_inputs(_PRIOR, generator)
        elif isinstance(method, DecodesLabels) and not isinstance(method, Encodes):
            drawn = method.sample_labels(_PRIOR, generator)
        if isinstance(method, Encodes):
            parts = []
            for start in range(0, len(observations.images), _BATCH):
                images = to_tensor(observations.images[start : start + _BATCH]).to(device)
                mean, log_variance = method.encode(images)
                parts.append(torch.stack([mean, log_variance.expand_as(mean)]).float().cpu())
            mean, log_variance = torch.cat(parts, dim=1)
        else:
            mean, log_variance = drawn.float().cpu(), torch.full_like(drawn, -torch.inf).float().cpu()
    return Codes(
        mean.numpy(),
        log_variance.numpy(),
        None if noise is None else noise.float().cpu().numpy(),
        isinstance(method, Encodes),
    )


def latent_content(method: Method, codes: Codes, names: dict[str, str]) -> dict[str, Any]:
    """The latents and categories of a model as JSON has them, and the histograms of their aggregate posteriors.

    Examples
    --------
    >>> from unweave.explorer.observations import draw_observations
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> content = latent_content(method, codes_of(method, draw_observations(data)), {"z0": "size"})
    >>> [latent["name"] for latent in content["latents"]]
    ['size', '']
    """
    mean, log_variance = torch.from_numpy(codes.mean), torch.from_numpy(codes.log_variance)
    labels = latent_labels(method, mean.shape[1])
    certain = (log_variance == -torch.inf).all(dim=0)
    used = usage(mean, log_variance, isinstance(method, EncodesWithLabels))
    spread = mean.std(dim=0, correction=0)
    centre = torch.where(certain, mean.mean(0), used.centre).numpy()
    scale = torch.where(certain, spread, used.scale).clamp(min=1e-3).numpy()
    importance = torch.where(certain, spread, used.kl).numpy()
    drawn = _aggregate_posterior(codes)
    low = np.minimum(centre - 3 * scale, np.quantile(drawn, 0.002, axis=0))
    high = np.maximum(centre + 3 * scale, np.quantile(drawn, 0.998, axis=0))
    categories = method.categories if isinstance(method, HasCategories) else ()
    in_category = {column for one in categories for column in range(one.start, one.stop)}
    reaches = _reaches(method, codes, centre, scale)
    given = method.label_layout.names if isinstance(method, LabelledMethod) and not codes.encoded else None
    latents = [
        {
            "label": label,
            "part": label.rstrip("0123456789"),
            "name": names.get(label, given[column] if given else ""),
            "importance": float(importance[column]) if codes.encoded else 0.0,
            "measure": "" if not codes.encoded else "deviation" if bool(certain[column]) else "KL",
            "active": not codes.encoded or bool(importance[column] > ACTIVE),
            "centre": float(centre[column]),
            "scale": float(scale[column]),
            "low": float(low[column]),
            "high": float(high[column]),
            "category": column in in_category,
            "reaches": reaches[column],
        }
        for column, label in enumerate(labels)
    ]
    histograms = [
        np.histogram(drawn[:, column], BINS, (low[column], high[column]))[0] for column in range(len(labels))
    ]
    peaks = np.maximum(1, np.max(histograms, axis=1, keepdims=True))
    return {
        "latents": latents,
        "categories": [list(range(one.start, one.stop)) for one in categories],
        "histograms": np.rint(255 * np.asarray(histograms) / peaks).astype(np.uint8),
    }


def _aggregate_posterior(codes: Codes) -> FloatArray:
    """Draws (m, D) from the mixture of all posteriors."""
    rng = np.random.default_rng(0)
    deviation = np.exp(0.5 * codes.log_variance.astype(np.float64))
    draws = rng.standard_normal((_DRAWS, *codes.mean.shape))
    return np.asarray((codes.mean + deviation * draws).reshape(-1, codes.mean.shape[1]), np.float64)


def _reaches(method: Method, codes: Codes, centre: AnyArray, scale: AnyArray) -> list[list[str]]:
    """For each latent the stages whose images depend on it."""
    device = device_of(method)
    base = torch.from_numpy(codes.mean[:1]).to(device)
    noise = None if codes.noise is None else torch.from_numpy(codes.noise[:1]).to(device)
    result = []
    with using(method):
        for column in range(base.shape[1]):
            moved = base.repeat(3, 1)
            shift = torch.tensor([-2.0, 0.0, 2.0], device=device)
            moved[:, column] = float(centre[column]) + float(scale[column]) * shift
            stages = decode_stages(method, moved, None if noise is None else noise.repeat(3, 1))
            final = list(stages)[-1]
            result.append(
                [
                    name
                    for name, images in stages.items()
                    if name == final or float((images - images[:1]).abs().max()) > _SAME
                ]
            )
    return result
