"""Figures 1, 3, 9-14, 32, 33 and 37-40: what the stages make of images and of codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from PIL import Image

from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.figures.grids import Block, Row
from unweave.figures.model_pictures import can_reconstruct, reconstruction_rows, traversal_rows
from unweave.figures.papers.multistage.models import (
    ablation_runs,
    draw_runs,
    extreme_runs,
    order_runs,
    shown_runs,
)
from unweave.figures.papers.paper import Exhibit, Picture
from unweave.figures.tiles import draw_tiles
from unweave.figures.traversal import device_of, draw_images, to_observations, traversal_units, using
from unweave.methods import DecodesStages, Encodes, EncodesDetails, EncodesWithLabels, Method
from unweave.objectives import reparameterise, standard_noise
from unweave.study import Results

_COLUMNS = 9
_LATENTS = 4  # rows of a traversal, as many as the paper's figures of appendix L have
_IMAGES, _DRAWS = 4, 5  # of Figure 32
_SEED = 0


def reconstruction_pictures(results: Results) -> dict[str, Picture]:
    """Images, and what each stage makes of them."""

    def block(method: Method, data: Dataset, heading: str) -> list[Block]:
        if not (can_reconstruct(method) and isinstance(method, DecodesStages)):
            return []
        return [Block(heading, "", reconstruction_rows(method, data, _SEED, _COLUMNS))]

    return draw_runs(results, shown_runs(results, staged=True, models=[""]), block)


def code_traversals(results: Results, part: str = "c") -> dict[str, Picture]:
    """Traversals of one part of the codes of two-stage models: rows of y above rows of x."""
    return draw_runs(results, shown_runs(results, staged=True, models=[""]), partial(_traversals, part=part))


def size_traversals(results: Results) -> dict[str, Picture]:
    """Traversals of c of the two-stage models with the fewest and the most latents in c."""
    return draw_runs(results, extreme_runs(results), partial(_traversals, part="c"))


def ablation_traversals(results: Results, models: Sequence[str], part: str = "c") -> dict[str, Picture]:
    """Traversals of the same image by a first stage and by ablations of the second, two side by side."""
    runs = ablation_runs(results, models, with_first=part == "c")
    return draw_runs(results, runs, partial(_traversals, part=part), across=2)


def order_traversals(results: Results) -> dict[str, Picture]:
    """Traversals of c of the same image, learned before z and after it."""
    return draw_runs(results, order_runs(results), partial(_traversals, part="c"), across=2)


def draws_of_y(results: Results) -> dict[str, Picture]:
    """Several draws of y for an image, and x of each, with z of the image and of that y."""

    def blocks(method: Method, data: Dataset, heading: str) -> list[Block]:
        if not (isinstance(method, DecodesStages) and isinstance(method, Encodes)) or "c" not in method.parts:
            return []
        images = draw_images(data, _IMAGES, _SEED)
        device = device_of(method)
        generator = torch.Generator(device).manual_seed(_SEED)
        groups, names = [], []
        with using(method):
            observed = to_tensor(images).to(device)
            mean, log_variance = method.encode(observed)
            if torch.isneginf(
                log_variance[:, method.parts["c"]]
            ).all():  # c has no noise: all draws are the same
                return []
            for index in range(_IMAGES):
                codes = mean[index].expand(_DRAWS, -1).clone()
                c = codes[:, method.parts["c"]]
                spread = log_variance[index].expand(_DRAWS, -1)[:, method.parts["c"]]
                codes[:, method.parts["c"]] = reparameterise(
                    c, spread, standard_noise(c, generator=generator)
                )
                if isinstance(method, EncodesDetails):
                    one = observed[index].expand(_DRAWS, *observed.shape[1:])
                    codes[:, method.parts["z"]] = method.encode_details(one, method.decode_first(codes)).mean
                for name, decoded in method.decode_stages(codes).items():
                    names.append(name)
                    groups.append(to_observations(data, decoded))
        stages = list(dict.fromkeys(names))
        tiles = draw_tiles(data, [images, *groups])
        rows = []
        for number, (name, row) in enumerate(zip(names, tiles[1:], strict=True)):
            image = number // len(stages)
            shown = (
                [tiles[0][image], *row]
                if name == stages[0]
                else [Image.new("RGB", row[0].size, "white"), *row]
            )
            rows.append(Row(name, "", shown, gap_above=name == stages[0] and image > 0))
        return [Block(heading, "the image, then draws of c", rows)]

    return draw_runs(results, shown_runs(results, staged=True, models=[""]), blocks, across=2)


def _traversals(method: Method, data: Dataset, heading: str, part: str) -> list[Block]:
    parts = method.parts if isinstance(method, Encodes) else {}
    chosen = part if part in parts else None  # a first stage alone has one part, whatever its name
    if part == "z" and chosen is None:
        return []
    rows = traversal_rows(method, data, _SEED, _COLUMNS, part=chosen, at_most=_LATENTS)
    about = traversal_units(method).removeprefix(", ") if isinstance(method, EncodesWithLabels) else ""
    return [Block(heading, about, rows)]


_CHOICE = (
    "One run per data set: that with the largest MIG of c, which the second stage does not change; without MIG, the "
    "first run."
)
_ROWS = (
    "y is what the first stage makes of the codes, x what the last stage makes of them. Each pair of rows moves one "
    "latent by the values below the last row and leaves the others at the code of one image; those with the largest KL "
    "come first. "
)
EXHIBITS = (
    Exhibit(
        "multistage-fig01-reconstructions",
        "Images, reconstructions of the first stage, and of the second",
        "Multi-stage modelling, Figures 1, 3 and 14",
        "Decoded from the mean codes of the images in the first row: y by the first stage, x by the second. "
        + _CHOICE,
        reconstruction_pictures,
    ),
    Exhibit(
        "multistage-fig03-traversals",
        "Traversals of c: the second stage keeps what the first learned",
        "Multi-stage modelling, Figures 3 and 13",
        _ROWS + _CHOICE,
        code_traversals,
    ),
    Exhibit(
        "multistage-fig03-traversals-z",
        "Traversals of z: what the second stage adds",
        "beside Multi-stage modelling, Figure 3",
        "Each row moves one latent of z; y is the same for all of them, as z does not reach it. " + _CHOICE,
        partial(code_traversals, part="z"),
    ),
    Exhibit(
        "multistage-fig09-sizes",
        "Traversals of c, with few latents and with many",
        "Multi-stage modelling, Figures 9 to 12",
        _ROWS + "Per data set the run with the fewest latents in c, and that with the most.",
        size_traversals,
    ),
    Exhibit(
        "multistage-fig32-draws",
        "Several draws of y for one image, and the reconstruction of each",
        "Multi-stage modelling, Figures 32 and 33",
        "Each pair of rows has an image, draws of y from the first stage's posterior of c, and below them x of the "
        "same draw, with z that the second stage's encoder gives the image and this y. " + _CHOICE,
        draws_of_y,
    ),
    Exhibit(
        "multistage-fig37-one-stage",
        "Ablation: both stages at once",
        "Multi-stage modelling, Figure 37",
        "M1 learns c and z together, with the penalty on c alone. Each row moves one latent of c.",
        partial(ablation_traversals, models=("M1",)),
    ),
    Exhibit(
        "multistage-fig38-inputs",
        "Ablation: c in place of y, and z joined to c",
        "Multi-stage modelling, Figure 38",
        "M2 joins c and z, M3 reads c in place of y, M4 is MS-VAE; all have the first stage that comes first. z stays "
        "at that of the image.",
        partial(ablation_traversals, models=("M2", "M3", "")),
    ),
    Exhibit(
        "multistage-fig39-order-c",
        "Ablation: z before c, traversals of c",
        "Multi-stage modelling, Figure 39",
        "M5 learns z by a plain VAE and then c; before it a first stage that learns c, after it MS-VAE on that.",
        order_traversals,
    ),
    Exhibit(
        "multistage-fig40-order-z",
        "Ablation: z before c, traversals of z",
        "Multi-stage modelling, Figure 40",
        "The same model: what z has learned before c.",
        partial(ablation_traversals, models=("M5",), part="z"),
    ),
)
