"""The page of a discovery: one HTML file that needs nothing else, for people who have never heard of latents.

What it shows is gathered here as values; the template ``page.html`` escapes every one of them. There is no script.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from unweave.arrays import AnyArray
from unweave.data.files.images import read_image
from unweave.discovery.factors import Factor, traversal_codes
from unweave.discovery.stability import EXPECTED_PURITY
from unweave.discovery.sureness import agreement_words, relation_words
from unweave.errors import UnweaveError

if TYPE_CHECKING:
    from unweave.discovery.discovery import Discovery

_STEPS, _STARTS = 7, 3
_THUMBNAIL = 112
_MOST_LISTED = 20


@dataclass(frozen=True)
class Picture:
    """An image inside the page, and what it shows in words."""

    data: Markup
    text: str
    name: str = ""


@dataclass(frozen=True)
class FactorSection:
    """What the page says of a factor."""

    factor: Factor
    number: int
    stability: str
    relations: list[str]
    rows: list[tuple[Picture, list[Picture]]]
    low: list[Picture]
    high: list[Picture]


def render_page(result: Discovery, has_explorer: bool) -> str:
    """The page as text.

    Parameters
    ----------
    result
        what was discovered.
    has_explorer
        whether explorer.html is beside the page.
    """
    sections = [_factor_section(result, factor, number) for number, factor in enumerate(result.factors, 1)]
    style = _resource("page.css")
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    text = _template().render(
        title=f"What varies in {result.photographs.folder.name}",
        headline=result.headline,
        policy=policy,
        style=Markup(style),
        sure=[section for section in sections if section.factor.status == "reproduced"],
        uncertain=[section for section in sections if section.factor.status != "reproduced"],
        sureness=result.sureness,
        missing=result.missing,
        odd=[(_thumbnail(result, odd.row), odd.why) for odd in result.odd],
        facts=_facts(result),
        unreadable=_cut(result.photographs.unreadable),
        duplicates=_cut(_duplicates(result)),
        choices=result.plan.choices,
        pilot=result.selected.pilot,
        final=result.selected.final,
        by_chance=EXPECTED_PURITY,
        chosen=result.selected.trained,
        labels=bool(result.labels),
        has_explorer=has_explorer,
    )
    return text.lstrip()


def _factor_section(result: Discovery, factor: Factor, number: int) -> FactorSection:
    starts = _start_rows(result, factor)
    measured, distinct = result.selected.measured, result.photographs.distinct
    codes = traversal_codes(measured, factor.latent, starts, distinct, _STEPS)
    drawn = result.run.decode(codes.reshape(-1, codes.shape[-1]))
    drawn = drawn.reshape(len(starts), _STEPS, *drawn.shape[1:])
    rows = []
    for start, images in zip(starts, drawn, strict=True):
        name = result.photographs.names[start]
        shown = [
            Picture(_png(image), f"{name} with {factor.title} at step {step} of {_STEPS}")
            for step, image in enumerate(images, 1)
        ]
        rows.append((_thumbnail(result, int(start)), shown))
    return FactorSection(
        factor,
        number,
        agreement_words(factor),
        relation_words(factor.relations),
        rows,
        [_thumbnail(result, row) for row in factor.low],
        [_thumbnail(result, row) for row in factor.high],
    )


def _start_rows(result: Discovery, factor: Factor) -> AnyArray:
    """Photographs to start from: of middling value in this factor, and drawn well, far apart in the others."""
    measured, distinct = result.selected.measured, result.photographs.distinct
    values = measured.mean[distinct, factor.latent]
    low, high = np.quantile(values, [0.25, 0.75])
    good = measured.errors[distinct] <= np.median(measured.errors[distinct])
    candidates = distinct[(values >= low) & (values <= high) & good]
    if len(candidates) < _STARTS:
        candidates = distinct
    others = [other.latent for other in result.factors if other is not factor]
    if not others:
        return np.asarray(candidates[np.linspace(0, len(candidates) - 1, _STARTS).astype(int)])
    points = measured.mean[candidates][:, others]
    chosen = [int(np.argmin(((points - np.median(points, axis=0)) ** 2).sum(axis=1)))]
    while len(chosen) < min(_STARTS, len(candidates)):
        distance = ((points[:, None] - points[chosen]) ** 2).sum(axis=2).min(axis=1)
        chosen.append(int(np.argmax(distance)))
    return np.asarray(candidates[chosen])


def _facts(result: Discovery) -> list[tuple[str, str]]:
    photographs = result.photographs
    sizes = photographs.common_sizes
    (height, width), count = sizes[0]
    others = len(sizes) - 1
    more = f" and {others} other size{'s' if others > 1 else ''}" if others else ""
    shown = f"{width} × {height} pixels{f' ({count:,} of them)' if more else ''}{more}"
    repeated = len(photographs) - len(photographs.distinct)
    return [
        ("Photographs", f"{len(photographs):,}"),
        ("Sizes", shown),
        ("Colour", "colour" if photographs.channels == 3 else "grey, or without visible colour"),
        (
            "Duplicates",
            f"{repeated:,} show{'s' if repeated == 1 else ''} the same as another one; each is learned from once"
            if repeated
            else "none",
        ),
        ("Unreadable files", f"{len(photographs.unreadable):,}" if photographs.unreadable else "none"),
    ]


def _duplicates(result: Discovery) -> list[tuple[str, str]]:
    names, first = result.photographs.names, result.photographs.first_alike
    return [(names[row], f"as {names[first[row]]}") for row in np.flatnonzero(first != np.arange(len(first)))]


def _cut(pairs: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], int]:
    """The first pairs, and how many there are besides."""
    return list(pairs[:_MOST_LISTED]), max(0, len(pairs) - _MOST_LISTED)


def _thumbnail(result: Discovery, row: int) -> Picture:
    """A photograph from its file, or if that is gone by now from the squares."""
    photographs = result.photographs
    name = photographs.names[row]
    if photographs.side >= 64:
        try:
            pixels: Any = read_image(
                photographs.folder / name, (_THUMBNAIL, _THUMBNAIL), photographs.channels
            )
            return Picture(_encode(pixels, "JPEG"), name, name)
        except (UnweaveError, OSError):
            pass
    return Picture(_encode(np.asarray(photographs.images[row]), "PNG"), name, name)


def _png(image: AnyArray) -> Markup:
    return _encode(np.clip(np.round(image * 255), 0, 255).astype(np.uint8), "PNG")


def _encode(pixels: AnyArray, kind: str) -> Markup:
    """Pixels (H, W, C) as an address that holds them."""
    from PIL import Image

    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    buffer = io.BytesIO()
    picture.save(buffer, kind, **({"quality": 82} if kind == "JPEG" else {"optimize": True}))
    return Markup(f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}")


@cache
def _template() -> Template:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
