"""What a method makes of codes of which one is moved and the others stay.

Where the codes come from is the method's capability: those of images, if it encodes; else, and for methods that
generate from codes and noise (GANs), codes from their prior with the same noise for all images of a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unweave.arrays import AnyArray, ArrayLike
from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError, unknown_name
from unweave.methods import (
    Decodes,
    DecodesStages,
    Encodes,
    EncodesWithLabels,
    GeneratesFromNoise,
    HasCategories,
    Method,
)
from unweave.objectives import usage

NUM_CODES = 256  # codes that decide which latents are in use, and how far a prior reaches
_REACH = (0.025, 0.975)  # quantiles of a prior that lie at -2 and 2, as those of N(0, 1) do
_SAME = 1e-6  # images that differ less do not depend on a latent


@dataclass(frozen=True)
class Traversal:
    """The observations of one latent's, or one category's, values.

    Parameters
    ----------
    label, detail
        its name, and how much it is used.
    captions
        its values in words.
    stages
        observations (n, …) as the data set has them, by the stage that makes them: "y" and "x" of a multi-stage model;
        "" of a method that has one. A stage that the latent does not reach is left out.
    """

    label: str
    detail: str
    captions: tuple[str, ...]
    stages: dict[str, AnyArray]


def traverse(
    method: Method,
    data: Dataset,
    values: ArrayLike,
    seed: int = 0,
    part: str | None = None,
    at_most: int | None = None,
    latents: Sequence[int] | None = None,
    noise_seed: int | None = None,
    names: Mapping[str, str] | None = None,
    row: int | None = None,
) -> list[Traversal]:
    """Move every latent by itself.

    Parameters
    ----------
    method
        that encodes and decodes, or generates from codes and noise.
    data
        from which images are drawn.
    values
        (n,), in the units of :func:`traversal_units`.
    seed
        of the image, or the code and noise, where the others stay.
    part
        of the code, whose latents are moved; by default all parts, one after the other.
    at_most
        so many latents of each part, those that are used most.
    latents
        the columns of the code that are moved, in this order; a column of a category stands for all of it.
    noise_seed
        of the noise of a method that generates from noise; by default ``seed``.
    names
        of latents, by label ("z0"; of a category that of its first column).
    row
        of the image where the others stay; by default one drawn by ``seed``.

    Returns
    -------
    list of Traversal
        categories first, then by falling KL.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> [traversal.stages[""].shape for traversal in traverse(method, data, [-1, 0, 1])]
    [(3, 8, 8, 1), (3, 8, 8, 1)]
    """
    check_can_traverse(method)
    with using(method):
        codes = _codes(method, data, seed, seed if noise_seed is None else noise_seed, row)
        parts = _parts(method, codes.base.shape[1])
        if part is not None and part not in parts:
            raise unknown_name("part", part, parts)
        steps = torch.as_tensor(np.asarray(values), dtype=codes.base.dtype, device=codes.base.device)
        chosen = parts if part is None else {part: parts[part]}
        moves = [
            move for name, columns in chosen.items() for move in _moves(method, codes, name, columns, at_most)
        ]
        if latents is not None:
            moves = [_move_of(latent, moves) for latent in latents]
        walks = [_walk(method, data, codes, move, steps) for move in moves]
        return [_named(walk, move, names or {}) for walk, move in zip(walks, moves, strict=True)]


def can_traverse(method: object) -> bool:
    """Whether a method has what :func:`traverse` needs.

    Examples
    --------
    >>> can_traverse(uw.methods.create("vae", uw.data.load("pendulum"), latent_size=2))
    True
    """
    return isinstance(method, GeneratesFromNoise) or (
        isinstance(method, Encodes) and isinstance(method, Decodes)
    )


def check_can_traverse(method: object) -> None:
    """Refuse a method that neither encodes and decodes nor generates from codes."""
    if not can_traverse(method):
        name = method.spec.name if isinstance(method, Method) else type(method).__name__
        message = "does not both encode and decode images, nor generate them from codes"
        raise ArgumentError("method", name, message)


def traversal_units(method: object) -> str:
    """What the values of a traversal count, where they are not values of the latent: to follow a title.

    Examples
    --------
    >>> traversal_units(uw.methods.create("vae", uw.data.load("pendulum"), latent_size=2))
    ''
    """
    if isinstance(method, EncodesWithLabels):
        return ", in deviations of its codes (labels not given)"
    return ""


def decode_stages(method: Method, codes: Tensor, noise: Tensor | None = None) -> dict[str, Tensor]:
    """The images of codes (n, D) by the stage that makes them, from noise (n, E) if the method takes some."""
    stages = method.decode_stages(codes) if isinstance(method, DecodesStages) else {}
    last = list(stages)[-1] if stages else ""
    if noise is not None and isinstance(method, GeneratesFromNoise):
        return stages | {last: method.generate(codes, noise)}
    if not stages and isinstance(method, Decodes):
        return {"": method.decode(codes)}
    return stages


def draw_images(data: Dataset, n: int, seed: int) -> AnyArray:
    """``n`` random images."""
    rng = np.random.default_rng(seed)
    which = data.sample_rows(n, rng) if data.finite else data.sample_factors(n, rng)
    return data.images(which, rng)


@contextmanager
def using(method: Method) -> Iterator[None]:
    """The method as it is used: in evaluation mode, without gradients; afterwards its mode is what it was."""
    training = method.training
    method.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        method.train(training)


def device_of(method: Method) -> torch.device:
    """Where a method's weights are, learned by gradients or not."""
    return next(itertools.chain(method.parameters(), method.buffers())).device


def to_observations(data: Dataset, decoded: Tensor) -> AnyArray:
    """Decoded observations as the data set has them: channels last, bytes for images."""
    array = decoded.float().cpu().numpy()
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    return np.rint(np.clip(array, 0, 1) * 255).astype(np.uint8) if data.is_images else array


# --- codes, and how far each is moved -----------------------------------------------------------------


class _Codes(NamedTuple):
    """Where a traversal starts, and per column what its values count."""

    base: Tensor  # (1, D)
    noise: Tensor | None  # (1, E)
    centre: Tensor  # (D,)
    scale: Tensor  # (D,)
    importance: Tensor  # (D,), NaN where there is no measure
    measure: Sequence[str]  # what importance is, per column


class _Move(NamedTuple):
    """A latent, or the columns of a category."""

    part: str
    columns: slice
    is_category: bool
    number: int  # within its part


def _codes(method: Method, data: Dataset, seed: int, noise_seed: int, row: int | None = None) -> _Codes:
    if isinstance(method, GeneratesFromNoise):
        if row is not None:
            message = f"{method.spec.name} starts from a code of its prior, not from an image"
            raise ArgumentError("row", row, message)
        return _prior_codes(method, seed, noise_seed)
    assert isinstance(method, Encodes)
    drawn = draw_images(data, NUM_CODES, seed)
    if row is not None:
        drawn = np.concatenate([data.images([row], np.random.default_rng(seed)), drawn[1:]])
    images = to_tensor(drawn).to(device_of(method))
    mean, log_variance = method.encode(images)
    kl, centre, scale = usage(mean, log_variance, isinstance(method, EncodesWithLabels))
    certain = (log_variance == -torch.inf).all(dim=0)  # codes without noise have no KL
    spread = mean.std(dim=0, correction=0)
    return _Codes(
        base=_with_whole_categories(method, mean[:1]),
        noise=None,
        centre=torch.where(certain, mean.mean(dim=0), centre),
        scale=torch.where(certain, spread, scale),
        importance=torch.where(certain, spread, kl),
        measure=["deviation" if known else "KL" for known in certain.tolist()],
    )


def _prior_codes(method: GeneratesFromNoise, seed: int, noise_seed: int) -> _Codes:
    assert isinstance(method, Method)
    device = device_of(method)
    codes, noise = method.sample_inputs(NUM_CODES, torch.Generator(device).manual_seed(seed))
    if noise_seed != seed:
        _, noise = method.sample_inputs(NUM_CODES, torch.Generator(device).manual_seed(noise_seed))
    low, high = codes.float().quantile(torch.tensor(_REACH, device=device), dim=0).to(codes.dtype)
    unknown = torch.full_like(low, torch.nan)
    return _Codes(codes[:1], noise[:1], (low + high) / 2, (high - low) / 4, unknown, [""] * codes.shape[1])


def _with_whole_categories(method: object, code: Tensor) -> Tensor:
    """The code with its most probable categories for certain, as generators know them."""
    if isinstance(method, HasCategories):
        code = code.clone()
        for columns in method.categories:
            index = code[:, columns].argmax(dim=1)
            code[:, columns] = torch.nn.functional.one_hot(index, columns.stop - columns.start).to(code)
    return code


def _parts(method: object, size: int) -> Mapping[str, slice]:
    return method.parts if isinstance(method, Encodes) else {"c": slice(0, size)}


def _moves(method: object, codes: _Codes, part: str, columns: slice, at_most: int | None) -> list[_Move]:
    """What moves in a part: its categories, then its latents from the most used on."""
    categories = method.categories if isinstance(method, HasCategories) else ()
    inside = [one for one in categories if columns.start <= one.start < columns.stop]
    taken = {column for one in inside for column in range(one.start, one.stop)}
    single = [column for column in range(columns.start, columns.stop) if column not in taken]
    importance = codes.importance.cpu().numpy()
    single.sort(key=lambda column: -importance[column] if importance[column] == importance[column] else 0.0)
    return [_Move(part, one, True, one.start - columns.start) for one in inside] + [
        _Move(part, slice(column, column + 1), False, column - columns.start) for column in single[:at_most]
    ]


def _move_of(latent: int, moves: Sequence[_Move]) -> _Move:
    """The move of a column of the code."""
    for move in moves:
        if move.columns.start <= latent < move.columns.stop:
            return move
    known = sorted(move.columns.start for move in moves)
    raise ArgumentError("latents", latent, f"the model has latents {known[0]} to {known[-1]}")


def _named(walk: Traversal, move: _Move, names: Mapping[str, str]) -> Traversal:
    """A traversal under the name that people gave its latent; the label moves to the details."""
    name = names.get(f"{move.part}{move.number}")
    if not name:
        return walk
    return replace(
        walk, label=" ".join(name.split()), detail=", ".join(filter(None, [walk.label, walk.detail]))
    )


def _walk(method: Method, data: Dataset, codes: _Codes, move: _Move, steps: Tensor) -> Traversal:
    """The images of a move."""
    first, last = move.columns.start, move.columns.stop
    if move.is_category:
        moved = codes.base.repeat(last - first, 1)
        moved[:, move.columns] = torch.eye(last - first, dtype=moved.dtype, device=moved.device)
        label = f"{move.part}{move.number}–{move.number + last - first - 1}"
        captions, detail = [str(value) for value in range(last - first)], "a category"
    else:
        positions = codes.centre[first] + codes.scale[first] * steps
        moved = codes.base.repeat(len(steps), 1)
        moved[:, first] = positions
        label = f"{move.part}{move.number}"
        shown = positions if codes.noise is not None else steps
        captions = [f"{round(value, 1) + 0.0:.1f}" for value in shown.tolist()]  # no -0.0
        measure = codes.measure[first]
        detail = f"{measure} {float(codes.importance[first]):.2f}" if measure else ""
    noise = None if codes.noise is None else codes.noise.repeat(len(moved), 1)
    images = decode_stages(method, moved, noise)
    final = list(images)[-1]
    stages = {
        name: to_observations(data, of_stage)
        for name, of_stage in images.items()
        if name == final or float((of_stage - of_stage[:1]).abs().max()) > _SAME
    }
    return Traversal(label, detail, tuple(captions), stages)
