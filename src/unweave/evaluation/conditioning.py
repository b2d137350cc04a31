"""Whether a multi-stage model's images still show the codes c of its first stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from unweave.arrays import AnyArray, FloatArray, as_array
from unweave.errors import ArgumentError
from unweave.evaluation.trained import Trained
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix
from unweave.metrics.metric import Metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Seed, check_arguments

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def normalised_mutual_information(reference: AnyArray, codes: AnyArray, num_bins: Count = 20) -> FloatArray:
    r"""How much of each latent of one array the same latent of another tells, from 0 to 1.

    .. math:: I(c^i; c_R^i) / H(c_R^i)

    "Improving the reconstruction of disentangled representation learners via multi-stage modelling" (2020), equation
    6, whose mean over latents is MI[C_R; C]. Codes are binned as for MIG.

    Parameters
    ----------
    reference
        (n, D): c_R.
    codes
        (n, D): c.
    num_bins
        the number of bins of equal width of each latent.

    Returns
    -------
    array
        (D,); NaN for a latent of ``reference`` that is constant: it has nothing to tell.

    Examples
    --------
    >>> reference = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> normalised_mutual_information(reference, -reference)
    array([1., 1.])
    >>> normalised_mutual_information(reference, reference[:, ::-1])
    array([0., 0.])
    """
    num_bins = check_arguments(normalised_mutual_information, {"num_bins": num_bins})["num_bins"]
    reference, codes = as_array(reference, "reference"), as_array(codes, "codes")
    if reference.ndim != 2 or reference.shape != codes.shape or len(codes) < 2:
        raise ArgumentError(
            "codes", f"array {codes.shape}", f"needs (n, D), n >= 2, as reference: {reference.shape}"
        )
    for name, array in (("reference", reference), ("codes", codes)):
        if not np.isfinite(array).all():
            raise ArgumentError(name, "array", "has values that are not finite")
    bins, reference_bins = discretise(codes, num_bins), discretise(reference, num_bins)
    per_latent = np.full(codes.shape[1], np.nan)
    for i in range(codes.shape[1]):
        information = mutual_information_matrix(bins[:, i : i + 1], reference_bins[:, i : i + 1])[0, 0]
        total = entropy(reference_bins[:, i : i + 1])[0]
        if total > 0:
            per_latent[i] = information / total
    return per_latent


def _conditioning(
    trained: Trained,
    *,
    num_images: Annotated[int, Ge(2)] = 10_000,
    num_bins: Count = 20,
    seed: Seed = 0,
) -> Score:
    r"""How well the images of a later stage are conditioned on the codes c of the first: M1, M2, M3 and M4.

    With E the mean of the first stage's encoder, y its reconstruction of x, z the mean of q(z|x,y), G the later
    stage's decoder and e noise from N(0, I), of the shape of z or of an image,

    .. math::

        M_1 &= MI[E(x); E(y)], & M_2 &= MI[E(x); E(G(y, z))], \\
        M_3 &= MI[E(x); E(G(y, e))], & M_4 &= MI[E(x); E(G(e, z))]

    "Improving the reconstruction of disentangled representation learners via multi-stage modelling" (2020), section 4
    and appendix G: MI is the mean over latents of :func:`normalised_mutual_information`. If z adds what y lacks, M2 >
    M1; if the images keep their c whatever z is, M1 > M3 >> M4. The value is M3.

    Parameters
    ----------
    num_images
        how many images, all different; a smaller data set is used whole. Few images overstate the information, by about
        (bins - 1)^2 / 2n nats.
    num_bins
        the number of bins of equal width of each latent.

    Returns
    -------
    Score
        ``details``: ``m1``, ``m2``, ``m3``, ``m4``; ``matrix`` (|C|, 4) of single latents; ``excluded``, latents of the
        first stage that are constant: NaN there, and the means leave them out; ``num_images``.
    """
    import torch

    method, params = trained.method, {"num_images": num_images, "num_bins": num_bins}
    generator = torch.Generator(device=trained.device).manual_seed(seed)
    which = trained.choose_images(num_images)
    columns: list[list[AnyArray]] = [[] for _ in range(5)]
    for images, posterior in trained.encoded(which):
        with torch.inference_mode():
            z = posterior.mean[:, method.parts["z"]]
            y = method.decode_first(posterior.mean)
            z_noise, y_noise = _normal(z, generator), _normal(y, generator)
            seen = (y, method.refine(y, z), method.refine(y, z_noise), method.refine(y_noise, z))
            codes = (method.encode_first(images).mean, *(method.encode_first(x).mean for x in seen))
        for column, code in zip(columns, codes, strict=True):
            column.append(code.double().cpu().numpy())
    reference, *others = (np.concatenate(column) for column in columns)
    matrix = np.stack([normalised_mutual_information(reference, codes, num_bins) for codes in others], axis=1)
    varying = np.isfinite(matrix[:, 0])
    means = matrix[varying].mean(axis=0) if varying.any() else np.full(4, np.nan)
    details = {f"m{i}": float(mean) for i, mean in enumerate(means, start=1)}
    more = {"matrix": matrix, "excluded": np.flatnonzero(~varying), "num_images": len(which)}
    return Score(details["m3"], {**details, **more}, {**params, "seed": seed})


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    """Independent noise from N(0, 1) of the shape of a tensor."""
    import torch

    return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


conditioning = Metric(
    "conditioning",
    _conditioning,
    label="Conditioning on C (M3)",
    takes="method",
    factors="none",
    parts={"m1": "M1", "m2": "M2", "m3": "M3", "m4": "M4"},
    show_parts=True,
    sizes=("num_images",),
    capabilities=("encodes", "refines"),
    in_all=False,
    # The first encoder reads five images, both encoders one more, and there are five passes of a decoder.
    images=lambda params: int(12 * params["num_images"]),
)
