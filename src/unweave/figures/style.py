"""Names, colours and sizes that all figures share.

Names and colours are declared with the methods, metrics and data sets themselves; here they are looked up, so that what
a user registers has a name and a colour in every figure.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from unweave import methods
from unweave.analyses.downstream import LEARNERS
from unweave.analyses.variants import variant_order
from unweave.data.registry import RECIPES
from unweave.evaluation.model_metrics import MODEL_METRICS
from unweave.methods.registry import method_label
from unweave.metrics import METRICS
from unweave.study.results import split_metric

WIDTH = 6.75  # inches: the text width of the papers
_DARK, _PALE = 0.25, 0.78  # the lightness of the first and the last of a method's variants
_RC: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text in a PDF stays text
    "figure.constrained_layout.use": True,
}


def method_name(method: str, *details: str) -> str:
    """A method's name as the papers write it, with its variant and other ``details`` in brackets.

    Examples
    --------
    >>> method_name("ss_idvae", "u predicted", "labelled 100")
    'SS-IDVAE (u predicted, labelled 100)'
    """
    name = method_label(method)
    present = [detail for detail in details if detail]
    return f"{name} ({', '.join(present)})" if present else name


def metric_name(metric: str) -> str:
    """The short name of a metric or of a part of one, for axes.

    Examples
    --------
    >>> metric_name("mig"), metric_name("dci.completeness"), metric_name("downstream_gbt.100")
    ('MIG', 'DCI compl.', 'GBT 100')
    """
    stem, part = split_metric(metric)
    known = MODEL_METRICS.get(stem) or METRICS.get(stem)
    if known is not None and part in known.parts:
        return known.parts[part]
    label = known.label if known is not None else LEARNERS.get(stem, stem.replace("_", " "))
    return f"{label} {part.replace('_', ' ')}" if part else label


def data_name(data: str) -> str:
    """A data set's name as the papers write it; the last two parts of the path of a folder of images.

    Examples
    --------
    >>> data_name("dsprites"), data_name("/home/someone/images/faces")
    ('dSprites', 'images/faces')
    """
    if Path(data).is_absolute():
        return "/".join(Path(data).parts[-2:]).removeprefix("//")
    return RECIPES[data].label if data in RECIPES else data


def representation_name(representation: str, labels: str = "") -> str:
    """Which codes were scored, and from which labels u they were computed.

    Examples
    --------
    >>> representation_name("mean", "given")
    'mean (u given)'
    """
    return f"{representation} (u {labels})" if labels else representation


def method_styles(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The ``color`` and ``marker`` of each method and variant, in the order of :func:`method_order`.

    They are the same in every figure, whatever other methods it shows. A method that declares none gets a colour and a
    marker that its name decides, and no built-in method has both. Variants of one method share its marker and are
    shades of its colour, from dark to pale in their order among those that are shown.

    Parameters
    ----------
    pairs
        of a method's name and a variant, "" for none.

    Examples
    --------
    >>> method_styles([("beta_vae", "")])
    {('beta_vae', ''): {'color': '#0072B2', 'marker': 'o'}}
    """
    variants: dict[str, list[str]] = {}
    for method, variant in sorted(set(pairs), key=lambda pair: method_order(*pair)):
        variants.setdefault(method, []).append(variant)
    styles = {}
    for method, names in variants.items():
        color, marker = methods.style(method)
        for variant, shade in zip(names, _shades(color, len(names)), strict=True):
            styles[method, variant] = {"color": shade, "marker": marker}
    return styles


def _shades(color: str, count: int) -> list[str]:
    """Colours of one hue, from dark to pale; a single one is the colour itself."""
    if count == 1:
        return [color]
    hue, _, saturation = colorsys.rgb_to_hls(*to_rgb(color))
    steps = (_DARK + (_PALE - _DARK) * index / (count - 1) for index in range(count))
    return [to_hex(colorsys.hls_to_rgb(hue, lightness, saturation)) for lightness in steps]


def method_order(method: str, variant: str = "") -> tuple[Any, ...]:
    """A sorting key: the order that methods declare, then the alphabet; variants of a method by their numbers.

    Examples
    --------
    >>> sorted(["mine", "idvae", "beta_vae"], key=method_order)
    ['beta_vae', 'idvae', 'mine']
    """
    known = method in methods.METHODS
    order = float(methods.describe(method).order) if known else float("inf")
    return (order, method, variant_order(variant), variant)


def legend_columns(names: Iterable[str], width: float = WIDTH) -> int:
    """How many entries of a legend fit side by side within ``width`` inches.

    Examples
    --------
    >>> legend_columns(["β-VAE", "FactorVAE"])
    7
    """
    longest = max(map(len, names), default=0)
    return max(1, int(width / (0.4 + 0.055 * longest)))


@contextmanager
def paper_style() -> Iterator[None]:
    """Matplotlib's settings for figures at paper width.

    Examples
    --------
    >>> with paper_style():
    ...     figure, axes = new_figure(WIDTH, 2, ncols=3)
    >>> axes.shape
    (1, 3)
    """
    with mpl.rc_context(_RC):
        yield


def new_figure(width: float, height: float, **subplots: Any) -> tuple[Figure, Any]:
    """A figure of a size in inches, outside pyplot, and its axes as a 2-D array; call it within :func:`paper_style`."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(squeeze=False, **subplots)
