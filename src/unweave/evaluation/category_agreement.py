"""Whether the categories that a model learned are the classes of the data, and whether its codes can be read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.arrays import AnyArray, FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.evaluation.trained import Trained
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix
from unweave.metrics.metric import Metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Seed

if TYPE_CHECKING:
    from torch import Tensor

_BATCH = 500


def _category_agreement(
    trained: Trained,
    *,
    factor: str | None = None,
    data: str | None = None,
    num_images: Count = 10_000,
    num_samples: Count = 2_000,
    num_bins: Count = 20,
    seed: Seed = 0,
) -> Score:
    r"""The share of images whose class the most probable category names, each category naming one class.

    .. math:: \max_\pi E_x[\pi(\arg\max_k q(k|x)) = \mathit{class}(x)]

    over one-to-one maps of categories to classes, the best of which is chosen with the classes known: it is the
    accuracy of clustering. As InfoGAN's Q was trained on generated images alone, this says both whether the generator's
    categories are classes and whether Q knows them in real images; ``category_recovered`` is the second alone.

    Parameters
    ----------
    factor
        the factor that holds the classes; None: the first.
    data
        the name of another data set to measure on, such as "mnist_test"; None: the one that ``evaluate`` was given.
    num_images
        how many images the shares are taken over, all different; a smaller data set is used whole.
    num_samples
        how many images are generated to be encoded again.
    num_bins
        of the continuous codes, for their mutual information.

    Returns
    -------
    Score
        ``details``: ``majority``, the share if a category names the class that it has most of, even one that another
        category names; ``information``, I(category; class) / H(class); ``continuous_information``, the same of the
        continuous codes, mean; of generated images ``category_recovered``, the share whose category is the most
        probable one again, ``continuous_recovered``, the correlation of a continuous code with the mean that is
        encoded, mean over codes, and ``continuous_mixed``, the absolute correlation of a code with the encoded means of
        the others; ``num_images``.
    """
    if data is not None:
        from unweave.data import load

        trained = trained._replace(data=load(data))
        trained.method.check_data(trained.data)
    classes_of = _classes(trained, factor)
    which = trained.choose_images(num_images)
    codes = np.concatenate([batch.posterior.mean.cpu().numpy() for batch in trained.encoded(which)])
    classes = classes_of(which)
    (block,) = trained.method.categories[:1]
    category, continuous = codes[:, block].argmax(1), _without(codes, trained.method.categories)
    table = contingency(category, classes)
    named, majority = best_match(table), table.max(1).sum() / table.sum()
    details: dict[str, Any] = {"majority": float(majority)}
    details["information"] = _information(category[:, None], classes)
    if continuous.shape[1]:
        details["continuous_information"] = _information(discretise(continuous, num_bins), classes)
    details |= _recovered(trained, num_samples, seed)
    params = {"factor": factor, "data": data, "num_images": num_images, "num_samples": num_samples}
    return Score(named, {**details, "num_images": len(which)}, {**params, "num_bins": num_bins, "seed": seed})


def contingency(categories: IntArray, classes: IntArray) -> IntArray:
    """How many images (K, C) have each category (n,) and each class (n,).

    Examples
    --------
    >>> contingency(np.array([0, 0, 1]), np.array([1, 1, 0]))
    array([[0, 2], [1, 0]])
    """
    table = np.zeros((int(categories.max()) + 1, int(classes.max()) + 1), np.int64)
    np.add.at(table, (categories, classes), 1)
    return table


def best_match(table: IntArray) -> float:
    """The largest share of images (K, C) on a one-to-one map of categories to classes.

    Examples
    --------
    >>> best_match(np.array([[1, 5], [4, 0]]))
    0.9
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def _classes(trained: Trained, factor: str | None) -> Any:
    """A function from rows (n,), or factors (n, K) of a simulator, to classes (n,)."""
    space = trained.data.space
    if not space.num_factors:
        raise ArgumentError("data", trained.data.name, "has no factors: needs one that holds the classes")
    position = 0 if factor is None else space.position(factor)
    if not isinstance(space.sizes[position], int):
        raise ArgumentError("factor", space.names[position], "is continuous: needs one that holds classes")

    def of(which: AnyArray) -> IntArray:
        factors = which if which.ndim == 2 else trained.data.factors(which)
        if trained.data.partly_labelled and np.isnan(factors[:, position]).any():
            trained.data.check_labelled("classes")
        return np.asarray(factors[:, position]).astype(np.int64)

    return of


def _without(codes: FloatArray, categories: tuple[slice, ...]) -> FloatArray:
    """The columns of codes that belong to no category."""
    left = np.ones(codes.shape[1], bool)
    for block in categories:
        left[block] = False
    return codes[:, left]


def _information(discrete: IntArray, classes: IntArray) -> float:
    """I(code; class) / H(class), mean over the columns of codes; 0 where there is one class."""
    total = float(entropy(classes[:, None])[0])
    information = mutual_information_matrix(discrete, classes[:, None])
    return float(information.mean()) / total if total > 0 else 0.0


def _recovered(trained: Trained, num_samples: int, seed: int) -> dict[str, float]:
    """How far the codes that images were generated from are encoded again."""
    import torch

    method = trained.method
    generator = torch.Generator(trained.device).manual_seed(seed)
    with torch.inference_mode():
        codes, noise = method.sample_inputs(num_samples, generator)
        parts: list[Tensor] = [
            method.encode(method.generate(c, e)).mean
            for c, e in zip(codes.split(_BATCH), noise.split(_BATCH), strict=True)
        ]
    drawn, encoded = codes.cpu().numpy(), torch.cat(parts).cpu().numpy()
    block = method.categories[0]
    same = drawn[:, block].argmax(1) == encoded[:, block].argmax(1)
    details = {"category_recovered": float(same.mean())}
    truth, estimate = _without(drawn, method.categories), _without(encoded, method.categories)
    size = truth.shape[1]
    if size:
        spread = np.concatenate([truth, estimate], axis=1).std(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.corrcoef(truth.T, estimate.T)[:size, size:]
        correlation[:, spread[size:] == 0] = 0.0  # a mean that is always the same tells nothing
        details["continuous_recovered"] = float(np.diag(correlation).mean())
        if size > 1:
            mixed = np.abs(correlation[~np.eye(size, dtype=bool)])
            details["continuous_mixed"] = float(mixed.mean())
    return details


category_agreement = Metric(
    "category_agreement",
    _category_agreement,
    label="class named by category",
    takes="method",
    factors="none",
    parts={
        "majority": "class named (majority)",
        "information": "I(category; class) / H",
        "continuous_information": "I(continuous; class) / H",
        "category_recovered": "category recovered",
        "continuous_recovered": "continuous recovered",
        "continuous_mixed": "continuous mixed",
    },
    sizes=("num_images", "num_samples"),
    capabilities=("encodes", "categories", "generates"),
    in_all=False,
    images=lambda params: int(params["num_images"] + 2 * params["num_samples"]),
)
