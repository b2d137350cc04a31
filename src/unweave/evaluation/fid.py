"""FID and KID of what a model makes of images, and of what it makes of nothing: reconstructions and samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unweave.arrays import AnyArray
from unweave.errors import ArgumentError
from unweave.evaluation.image_features import as_pictures, dataset_features, image_features
from unweave.evaluation.image_quality import feature_distances
from unweave.evaluation.inception import SECONDS
from unweave.evaluation.trained import Trained
from unweave.metrics.metric import Metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Seed

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from unweave.methods.method import Posterior

FEWEST = 50
_BATCH = 64


def _fid_reconstruction(
    trained: Trained,
    *,
    num_images: Count = 5_000,
    features: Any = "inception",
    code_source: Literal["mean", "draw"] = "mean",
    seed: Seed = 0,
) -> Score:
    """FID, and KID, between images of a data set and their reconstructions; lower is better.

    "Improving the reconstruction of disentangled representation learners via multi-stage modelling" (2020), section 4;
    the distances are those of :func:`unweave.evaluation.image_distances`. Both sets have the same images, so that a
    perfect reconstruction has distance 0.

    Parameters
    ----------
    num_images
        how many images, all different; a smaller data set is used whole. FID falls as it grows: only values of equally
        many images compare. Not below 50; with no more images than features (2,048 of Inception) the covariance is
        singular, and ``details["full_rank"]`` is False.
    features
        as :func:`unweave.evaluation.image_distances` takes them; on the command line and in studies "inception", or the
        path of a file of its weights, or of the folder of a run whose mean codes are the features.
    code_source
        what is decoded: the "mean" of q(z|x), as for L1 and L2; or one "draw" from it, as in the paper's Figure 8.
        Of a model that refines a first stage only z is drawn then: y, and so q(z|x,y), belongs to the mean of c.

    Returns
    -------
    Score
        ``details``: ``kid`` and ``kid_standard_error``, ``num_images``, ``num_features``, ``full_rank``.
    """

    def reconstruct(generator: torch.Generator, which: AnyArray) -> Iterator[Tensor]:
        for _, posterior in trained.encoded(which):
            drawn = posterior.mean if code_source == "mean" else _draw(trained, posterior, generator)
            yield trained.method.decode(drawn)

    score = _distances(trained, reconstruct, num_images, features, seed)
    return replace(score, params={**score.params, "code_source": code_source})


def _fid_random_z(
    trained: Trained, *, num_images: Count = 5_000, features: Any = "inception", seed: Seed = 0
) -> Score:
    """FID, and KID, between images and what a multi-stage model makes of their c with z from the prior N(0, I).

    The curve "Random Z" of "Improving the reconstruction of disentangled representation learners via multi-stage
    modelling" (2020), Figure 8; ``fid_reconstruction`` is the other, with z of the image itself.

    Parameters
    ----------
    num_images, features
        as of ``fid_reconstruction``.

    Returns
    -------
    Score
        as of ``fid_reconstruction``.
    """

    def reconstruct(generator: torch.Generator, which: AnyArray) -> Iterator[Tensor]:
        for _, posterior in trained.encoded(which):
            codes = posterior.mean.clone()
            codes[:, trained.method.parts["z"]] = _noise(codes, generator)[:, trained.method.parts["z"]]
            yield trained.method.decode(codes)

    return _distances(trained, reconstruct, num_images, features, seed)


def _fid_samples(
    trained: Trained, *, num_images: Count = 5_000, features: Any = "inception", seed: Seed = 0
) -> Score:
    """FID, and KID, between images of a data set and as many samples of the model; lower is better.

    Heusel et al., "GANs trained by a two time-scale update rule converge to a local Nash equilibrium", 2017; Binkowski
    et al., "Demystifying MMD GANs", 2018. Of a VAE samples are the expected images of codes from the prior.

    Parameters
    ----------
    num_images, features
        as of ``fid_reconstruction``.

    Returns
    -------
    Score
        as of ``fid_reconstruction``.
    """

    def sample(generator: torch.Generator, which: AnyArray) -> Iterator[Tensor]:
        for start in range(0, len(which), _BATCH):
            yield trained.method.sample(min(_BATCH, len(which) - start), generator)

    return _distances(trained, sample, num_images, features, seed)


def _distances(trained: Trained, make: Any, num_images: int, features: Any, seed: int) -> Score:
    """FID as the value, of images of the data set and those that ``make(generator, which)`` yields in batches."""
    import torch

    data = trained.data
    available = num_images if not data.finite or data.sampler is not None else min(num_images, len(data))
    _check_number("num_images" if available == num_images else "data", available)
    extract = image_features(features)
    generator = torch.Generator(device=trained.device).manual_seed(seed)
    which = trained.choose_images(num_images)
    with torch.inference_mode():
        generated = [_bytes(images) for images in make(generator, which)]
    theirs = extract(np.concatenate(generated))
    if not np.isfinite(theirs).all():
        raise ArgumentError("features", extract.name, "has values that are not finite, of the model's images")
    scores = feature_distances(dataset_features(data, which, extract, trained.rng), theirs, extract.name)
    kid = scores["kid"]
    details = {
        "kid": kid.value,
        "kid_standard_error": kid.details["standard_error"],
        "num_images": len(which),
        "num_features": theirs.shape[1],
        "full_rank": len(which) > theirs.shape[1],
    }
    params = {"num_images": num_images, "features": extract.name, "seed": seed}
    return Score(scores["fid"].value, details, params)


def _bytes(images: Tensor) -> AnyArray:
    """Images (n, C, H, W) in [0, 1] as bytes (n, H, W, C)."""
    if not images.isfinite().all():
        raise ArgumentError("method", "images", "generates images with values that are not finite")
    return as_pictures(images.permute(0, 2, 3, 1).double().cpu().numpy())


def _draw(trained: Trained, posterior: Posterior, generator: torch.Generator) -> Tensor:
    """A draw from q(z|x) of each image; of a model that refines a first stage, of z alone."""
    from unweave.methods.method import Refines
    from unweave.objectives import reparameterise, standard_noise

    mean, log_variance = posterior
    correlation = trained.method.noise_correlation or 0.0
    codes = reparameterise(mean, log_variance, standard_noise(mean, correlation, generator))
    if isinstance(trained.method, Refines):
        part = trained.method.parts["c"]
        codes[:, part] = mean[:, part]
    return codes


def _noise(like: Tensor, generator: torch.Generator) -> Tensor:
    import torch

    return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def _check_number(argument: str, number: int) -> None:
    if number < FEWEST:
        message = f"FID of few images is mostly bias, which falls as 1 / number: needs at least {FEWEST}"
        raise ArgumentError(argument, f"{number} images", message)


def _check(params: Any) -> None:
    """Refuse parameters that cannot be served here: too few images, weights that are not installed."""
    _check_number("num_images", params["num_images"])
    image_features(params["features"])


def _seconds(params: Any) -> float:
    """Of the images that the model makes; those of the data set are seen once and kept."""
    return float(SECONDS * params["num_images"]) if params["features"] == "inception" else 0.0


fid_reconstruction = Metric(
    "fid_reconstruction",
    _fid_reconstruction,
    label="FID",
    higher_is_better=False,
    takes="method",
    factors="none",
    parts={"kid": "KID", "kid_standard_error": "KID, standard error"},
    show_parts=True,
    sizes=("num_images",),
    capabilities=("encodes", "decodes"),
    pictures=True,
    in_all=False,
    check=_check,
    images=lambda params: int(2 * params["num_images"]),
    seconds=_seconds,
)
fid_random_z = replace(
    fid_reconstruction,
    name="fid_random_z",
    function=_fid_random_z,
    label="FID, random z",
    capabilities=("encodes", "decodes", "refines"),
)
fid_samples = replace(
    fid_reconstruction,
    name="fid_samples",
    function=_fid_samples,
    label="FID of samples",
    capabilities=("samples",),
)
