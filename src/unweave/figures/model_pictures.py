"""Pictures of a method: reconstructions, latent traversals (still and moving), samples, codes against noise.

Each asks for what it needs, a capability of :mod:`unweave.methods.method`, and takes any method that has it. Methods of
several stages have a row for each: y of the first above x of the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.data.factors import check_rows
from unweave.errors import ArgumentError
from unweave.figures.grids import Row, image_grid
from unweave.figures.tiles import draw_tiles
from unweave.figures.traversal import (
    NUM_CODES,
    Traversal,
    decode_stages,
    device_of,
    draw_images,
    to_observations,
    traversal_units,
    traverse,
    using,
)
from unweave.files import replacing
from unweave.methods import Decodes, Encodes, GeneratesFromNoise, HasCategories, Method, Samples
from unweave.parameters import Count, Positive, Seed, check_arguments

_FRAME_MILLISECONDS = 80


def can_reconstruct(method: object) -> bool:
    """Whether a method has what :func:`reconstructions` needs: it encodes and decodes.

    Examples
    --------
    >>> data = uw.data.load("pendulum")
    >>> can_reconstruct(uw.methods.create("vae", data, latent_size=2))
    True
    """
    return isinstance(method, Encodes) and isinstance(method, Decodes)


def reconstructions(method: Method, data: Dataset, seed: Seed = 0, columns: Count = 12) -> Image.Image:
    """Random images above, their reconstructions from the mean code below: a row per stage.

    Parameters
    ----------
    method
        that encodes and decodes.
    data
        from which ``columns`` images are drawn.
    seed
        of the choice of images.
    columns
        the number of images.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title and labels.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.reconstructions(method, data, columns=3).size
    (492, 276)
    """
    check_arguments(reconstructions, {"seed": seed, "columns": columns})
    rows = reconstruction_rows(method, data, seed, columns)
    return image_grid(f"{method.spec.name} on {data.name}", rows)


def reconstruction_rows(method: Method, data: Dataset, seed: Seed = 0, columns: Count = 12) -> list[Row]:
    """The rows of :func:`reconstructions`."""
    if not (isinstance(method, Encodes) and isinstance(method, Decodes)):
        raise _lacks(method, "does not both encode and decode images")
    images = draw_images(data, columns, seed)
    with using(method):
        codes = method.encode(to_tensor(images).to(device_of(method))).mean
        stages = decode_stages(method, codes)
    observations = [images, *(to_observations(data, of_stage) for of_stage in stages.values())]
    labels = ["image", *(name or "reconstruction" for name in stages)]
    return [
        Row(label, "", tiles) for label, tiles in zip(labels, draw_tiles(data, observations), strict=True)
    ]


def traversals(
    method: Method,
    data: Dataset,
    seed: Seed = 0,
    columns: Count = 11,
    span: Positive = 2.0,
    part: str | None = None,
    at_most: Count | None = None,
    latents: Sequence[int] | None = None,
    names: Mapping[str, str] | None = None,
    row: int | None = None,
) -> Image.Image:
    """One row per latent, those with the largest KL first: the latent goes from -span to span, the others stay.

    The others stay at the mean code of one image, which is shown first, beside its reconstruction. Where the prior is
    p(z|u), N(0, I) is no measure: KL is to a Gaussian with the moments of the codes, and span counts their standard
    deviations, as it does for codes that have no noise. Codes are those of ``method.encode``, without labels.

    A method of several stages has a row for each that the latent reaches: y above x. A code that is a category has an
    image for each of its values. A method that generates from codes and noise starts from a code of its prior, whose
    quantiles 2.5 % and 97.5 % are at -2 and 2; all images of the picture have the same noise.

    Parameters
    ----------
    method
        that encodes and decodes, or generates from codes and noise.
    data
        from which the image and those for the KL are drawn.
    seed
        of the choice of images, or of the code and the noise.
    columns
        the number of values of each latent, at least 2.
    span
        the largest value.
    part
        of the code, for example "c" or "z" of a multi-stage model; by default all parts, one after the other.
    at_most
        so many latents of each part, those with the largest KL.
    latents
        those to show, in this order, by their columns in the code.
    names
        of latents, by label ({"z0": "scale"}), as ``run.names`` has them.
    row
        of the image in the data set; by default one drawn by ``seed``.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title, labels, and the values below the last row.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.traversals(method, data, columns=3).height
    420
    """
    rows = traversal_rows(method, data, seed, columns, span, part, at_most, latents, names, row)
    if can_reconstruct(method) and not isinstance(method, GeneratesFromNoise):
        rows = [start_row(method, data, seed, row), *rows]
    return image_grid(
        f"{method.spec.name} on {data.name}: each latent by itself{traversal_units(method)}", rows
    )


def row_pictures(
    method: Method,
    data: Dataset,
    rows: Sequence[int],
    columns: Count = 11,
    span: Positive = 2.0,
    at_most: Count | None = None,
    latents: Sequence[int] | None = None,
) -> Image.Image:
    """What a method makes of chosen images: each beside its reconstruction, and its latents moved one by one.

    Parameters
    ----------
    method
        that encodes and decodes.
    data
        whose rows are shown.
    rows
        of the images.
    columns, span, at_most, latents
        as for :func:`traversals`.

    Returns
    -------
    PIL.Image.Image
        the picture.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.row_pictures(method, data, [0, 2], columns=3).height
    778
    """
    if not can_reconstruct(method) or isinstance(method, GeneratesFromNoise):
        raise _lacks(method, "does not both encode and decode images")
    shown: list[Row] = []
    for number, row in enumerate(check_rows(rows, len(data)).tolist()):
        start = start_row(method, data, 0, row)
        shown.append(replace(start, gap_above=number > 0))
        shown += traversal_rows(method, data, 0, columns, span, None, at_most, latents, row=row)
    return image_grid(f"{method.spec.name} on {data.name}{traversal_units(method)}", shown)


def start_row(method: Method, data: Dataset, seed: int, row: int | None) -> Row:
    """The image that a traversal starts from, and its reconstruction."""
    rng = np.random.default_rng(seed)
    image = draw_images(data, NUM_CODES, seed)[:1] if row is None else data.images([row], rng)
    assert isinstance(method, Encodes)
    with using(method):
        stages = decode_stages(method, method.encode(to_tensor(image).to(device_of(method))).mean)
    observations = [image, *(to_observations(data, of_stage) for of_stage in stages.values())]
    tiles = [tile for tiles in draw_tiles(data, observations) for tile in tiles]
    captions = ["image", *(name or "reconstruction" for name in stages)]
    detail = "" if row is None else f"row {row}"
    label = "start" if row is None or data.files is None else data.files[row]
    return Row(label, detail, tiles, captions)


def traversal_rows(
    method: Method,
    data: Dataset,
    seed: Seed = 0,
    columns: Count = 11,
    span: Positive = 2.0,
    part: str | None = None,
    at_most: Count | None = None,
    latents: Sequence[int] | None = None,
    names: Mapping[str, str] | None = None,
    row: int | None = None,
) -> list[Row]:
    """The rows of :func:`traversals` but the first; values are below the last, and below others where they differ."""
    check_arguments(
        traversals, {"seed": seed, "columns": columns, "span": span, "part": part, "at_most": at_most}
    )
    if columns < 2:
        raise ArgumentError("columns", columns, "needs at least 2")
    values = np.linspace(-span, span, columns)
    moves = traverse(method, data, values, seed, part, at_most, latents, names=names, row=row)
    return rows_of(data, moves)


def rows_of(data: Dataset, traversals: Sequence[Traversal]) -> list[Row]:
    """A row per stage of each traversal; captions where the next traversal has others."""
    tiles = iter(draw_tiles(data, [images for one in traversals for images in one.stages.values()]))
    rows = []
    for index, one in enumerate(traversals):
        following = traversals[index + 1].captions if index + 1 < len(traversals) else ()
        # Rows of y and x belong together.
        apart = index > 0 and max(len(one.stages), len(traversals[index - 1].stages)) > 1
        for number, name in enumerate(one.stages):
            is_last = number == len(one.stages) - 1
            rows.append(
                Row(
                    f"{one.label}: {name}" if name else one.label,
                    one.detail if number == 0 else "",
                    next(tiles),
                    one.captions if is_last and one.captions != following else (),
                    gap_above=number == 0 and apart,
                )
            )
    return rows


def save_traversal_animation(
    method: Method,
    data: Dataset,
    path: Path | str,
    seed: Seed = 0,
    frames: Count = 24,
    span: Positive = 2.0,
    at_most: Count | None = None,
    latents: Sequence[int] | None = None,
    names: Mapping[str, str] | None = None,
) -> Path:
    """Write an animated GIF: all latents side by side, each swinging from -span to span and back.

    A method of several stages is shown by its last.

    Parameters
    ----------
    method, data, seed, span, at_most, latents, names
        as for :func:`traversals`.
    path
        that ends in .gif.
    frames
        the number of pictures, at least 2.

    Returns
    -------
    Path
        of the file.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.save_traversal_animation(method, data, "traversals.gif", frames=4).name
    'traversals.gif'
    """
    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise ArgumentError("path", str(path), "an animation's name ends in .gif")
    check_arguments(
        save_traversal_animation, {"seed": seed, "frames": frames, "span": span, "at_most": at_most}
    )
    if frames < 2:
        raise ArgumentError("frames", frames, "needs at least 2")
    # Evenly spaced in angle, so that the motion slows down where it turns.
    swing = span * np.sin(np.linspace(-np.pi / 2, np.pi / 2, frames // 2 + 1))
    moves = traverse(method, data, swing, seed, at_most=at_most, latents=latents, names=names)
    tiles = draw_tiles(data, [list(one.stages.values())[-1] for one in moves])
    labels = [one.label + (f": {one.detail}" if one.detail else "") for one in moves]
    across = min(len(moves), 5)
    pictures = []
    for frame in [*range(len(swing)), *range(len(swing) - 2, 0, -1)]:
        # A category has as many images as values, whatever the number of frames.
        shown = [row[round(frame / (len(swing) - 1) * (len(row) - 1))] for row in tiles]
        rows = [
            Row("", "", shown[start : start + across], labels[start : start + across])
            for start in range(0, len(moves), across)
        ]
        pictures.append(image_grid(None, rows))
    with replacing(target) as work:
        pictures[0].save(
            work, save_all=True, append_images=pictures[1:], duration=_FRAME_MILLISECONDS, loop=0
        )
    return target


def samples(
    method: Method, data: Dataset, seed: Seed = 0, rows: Count = 4, columns: Count = 12
) -> Image.Image:
    """Images that a method generates: of a GAN, of a flow, or of codes from a VAE's prior.

    Parameters
    ----------
    method
        that samples.
    data
        that it was trained on: decides how its observations are drawn.
    seed
        of the samples.
    rows, columns
        of the picture.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> uw.figures.samples(method, data, rows=2, columns=4).size
    (436, 276)
    """
    check_arguments(samples, {"seed": seed, "rows": rows, "columns": columns})
    grid = sample_rows(method, data, seed, rows, columns)
    return image_grid(f"{method.spec.name} on {data.name}: samples", grid)


def sample_rows(
    method: Method, data: Dataset, seed: Seed = 0, rows: Count = 4, columns: Count = 12
) -> list[Row]:
    """The rows of :func:`samples`."""
    if not isinstance(method, Samples):
        raise _lacks(method, "does not generate images")
    with using(method):
        generated = method.sample(rows * columns, torch.Generator(device_of(method)).manual_seed(seed))
    tiles = draw_tiles(data, [to_observations(data, generated)])[0]
    return [Row("", "", tiles[start : start + columns]) for start in range(0, len(tiles), columns)]


def codes_and_noise(
    method: Method, data: Dataset, seed: Seed = 0, rows: Count = 8, columns: Count = 10
) -> Image.Image:
    """A row per code, a column per draw of noise: what each of the two decides.

    Parameters
    ----------
    method
        that generates from codes and noise, as GANs do.
    data
        that it was trained on: decides how its observations are drawn.
    seed
        of codes and noise.
    rows
        the number of codes from the prior. A method with one category has as many rows as that has values, and the
        rows differ in it alone.
    columns
        the number of draws of noise.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title and labels.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8), name="black")
    >>> method = uw.methods.create("infogan", data, num_categories=3, width=4)
    >>> uw.figures.codes_and_noise(method, data, columns=4).size
    (579, 340)
    """
    check_arguments(codes_and_noise, {"seed": seed, "rows": rows, "columns": columns})
    grid = code_noise_rows(method, data, seed, rows, columns)
    return image_grid(f"{method.spec.name} on {data.name}: codes down, noise across", grid)


def code_noise_rows(
    method: Method, data: Dataset, seed: Seed = 0, rows: Count = 8, columns: Count = 10
) -> list[Row]:
    """The rows of :func:`codes_and_noise`; a column of y, which no noise reaches, comes first where there is one."""
    if not isinstance(method, GeneratesFromNoise):
        raise _lacks(method, "does not generate images from codes and noise")
    generator = torch.Generator(device_of(method)).manual_seed(seed)
    with using(method):
        codes, noise = method.sample_inputs(max(rows, columns), generator)
        labels = [f"code {number}" for number in range(1, rows + 1)]
        categories = method.categories if isinstance(method, HasCategories) else ()
        if len(categories) == 1:
            size = categories[0].stop - categories[0].start
            codes = codes[:1].repeat(size, 1)
            codes[:, categories[0]] = torch.eye(size, dtype=codes.dtype, device=codes.device)
            labels = [f"category {number}" for number in range(size)]
        groups = []
        for code in codes[: len(labels)]:
            repeated = code.expand(columns, -1)
            stages = decode_stages(method, repeated, noise[:columns])
            *earlier, last = stages.values()
            groups.append(to_observations(data, torch.cat([*(images[:1] for images in earlier), last])))
    tiles = draw_tiles(data, groups)
    names = [*list(stages)[:-1], *([list(stages)[-1]] * columns)]
    captions = names if any(names) else ()
    return [
        Row(label, "", row, captions if row is tiles[-1] else ())
        for label, row in zip(labels, tiles, strict=True)
    ]


def _lacks(method: object, message: str) -> ArgumentError:
    """The error about a method without a capability, by the method's name."""
    return ArgumentError(
        "method", method.spec.name if isinstance(method, Method) else type(method).__name__, message
    )
