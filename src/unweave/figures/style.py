"""How figures of studies look: one colour per method everywhere, names as in the papers, paper-width text."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from unweave.analyses.variants import variant_order
from unweave.data.registry import RECIPES

WIDTH = 6.75  # inches: the text width of the papers

# Okabe and Ito's colours, which the colour-blind can tell apart; the marker tells apart methods of one colour.
_BLUE, _ORANGE, _GREEN, _VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
_SKY, _PINK, _YELLOW, _BLACK, _GREY = "#56B4E9", "#CC79A7", "#B8A800", "#000000", "#7F7F7F"
_METHODS: dict[str, tuple[str, str, str]] = {
    "vae": ("VAE", _BLACK, "p"),
    "beta_vae": ("β-VAE", _BLUE, "o"),
    "factor_vae": ("FactorVAE", _ORANGE, "s"),
    "beta_tcvae": ("β-TCVAE", _GREEN, "^"),
    "dip_vae_i": ("DIP-VAE-I", _VERMILION, "D"),
    "dip_vae_ii": ("DIP-VAE-II", _PINK, "v"),
    "annealed_vae": ("AnnealedVAE", _SKY, "P"),
    "full_vae": ("FullVAE", _VERMILION, "X"),
    "ivae": ("iVAE", _ORANGE, "h"),
    "idvae": ("IDVAE", _GREEN, "v"),
    "ss_ivae": ("SS-iVAE", _YELLOW, "<"),
    "ss_idvae": ("SS-IDVAE", _PINK, ">"),
    "gvae": ("GVAE", _PINK, "d"),
    "ml_vae": ("ML-VAE", _GREY, "s"),
    "ada_gvae": ("Ada-GVAE", _BLACK, "^"),
    "ada_ml_vae": ("Ada-ML-VAE", _YELLOW, "v"),
    "ms_vae": ("MS-VAE", _ORANGE, "P"),
    "ms_gan": ("MS-GAN", _VERMILION, "o"),
    "ms_flow": ("MS-FLOW", _PINK, "<"),
}
_TAKEN = {(color, marker) for _, color, marker in _METHODS.values()}
_SPARE = [
    (color, marker)
    for color in (_BLUE, _ORANGE, _GREEN, _VERMILION, _SKY, _PINK, _YELLOW, _BLACK, _GREY)
    for marker in "os^DvPX*hd<>"
    if (color, marker) not in _TAKEN
]
_DARK, _PALE = 0.25, 0.78  # the lightness of the first and the last of a method's variants
_METRICS = {
    "beta_vae": "BetaVAE",
    "factor_vae": "FactorVAE",
    "mig": "MIG",
    "dci": "DCI",
    "dci.completeness": "DCI compl.",
    "dci.informativeness_test": "DCI inform.",
    "modularity": "Modularity",
    "explicitness": "Explicitness",
    "sap": "SAP",
    "z_diff": "Z-diff",
    "udr": "UDR",
    "gaussian_total_correlation": "Total correlation",
    "unsupervised": "ELBO",
    "unsupervised.elbo": "ELBO",
    "unsupervised.kl": "KL",
    "unsupervised.reconstruction": "Reconstruction",
    "downstream_logistic": "LR",
    "downstream_gbt": "GBT",
}
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

    >>> method_name("ss_idvae", "u predicted", "labelled 100")
    'SS-IDVAE (u predicted, labelled 100)'
    """
    name = _METHODS[method][0] if method in _METHODS else method.replace("_", " ")
    present = [detail for detail in details if detail]
    return f"{name} ({', '.join(present)})" if present else name


def metric_name(metric: str) -> str:
    """A metric's short name, for axes; ``downstream_gbt.100`` becomes "GBT 100"."""
    if metric in _METRICS:
        return _METRICS[metric]
    stem, dot, part = metric.partition(".")
    return f"{_METRICS.get(stem, stem)} {part}".replace("_", " ") if dot else metric.replace("_", " ")


def data_name(data: str) -> str:
    """A data set's name as the papers write it; the last two parts of the path of a folder of images."""
    if Path(data).is_absolute():
        return "/".join(Path(data).parts[-2:]).removeprefix("//")
    return RECIPES[data].label if data in RECIPES else data


def representation_name(representation: str, labels: str = "") -> str:
    """Which codes, for people.

    >>> representation_name("mean", "given")
    'mean (u given)'
    """
    return f"{representation} (u {labels})" if labels else representation


def method_styles(methods: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Per method and variant its ``color`` and ``marker``, in the order of ``method_order``.

    They are the same in every figure, whatever other methods it shows. A method that the papers do not have gets a
    colour and a marker that its name decides, and no method of the papers has both. Variants of one method share its
    marker and are shades of its colour, from dark to pale in their order among those that are shown.

    >>> method_styles([("beta_vae", "")])
    {('beta_vae', ''): {'color': '#0072B2', 'marker': 'o'}}
    """
    variants: dict[str, list[str]] = {}
    for method, variant in sorted(set(methods), key=lambda pair: method_order(*pair)):
        variants.setdefault(method, []).append(variant)
    styles = {}
    for method, names in variants.items():
        color, marker = (
            _METHODS[method][1:] if method in _METHODS else _SPARE[zlib.crc32(method.encode()) % len(_SPARE)]
        )
        for variant, shade in zip(names, _shades(color, len(names)), strict=True):
            styles[method, variant] = {"color": shade, "marker": marker}
    return styles


def _shades(color: str, count: int) -> list[str]:
    """Colours of one hue, from dark to pale; a single one is the colour itself."""
    if count == 1:
        return [color]
    hue, _, saturation = colorsys.rgb_to_hls(*to_rgb(color))
    steps = (_DARK + (_PALE - _DARK) * place / (count - 1) for place in range(count))
    return [to_hex(colorsys.hls_to_rgb(hue, lightness, saturation)) for lightness in steps]


def method_order(method: str, variant: str = "") -> tuple[Any, ...]:
    """A sorting key: the papers' order, then the alphabet; variants of a method by their numbers."""
    known = list(_METHODS)
    return (known.index(method) if method in known else len(known), method, variant_order(variant), variant)


def legend_columns(names: Iterable[str], width: float = WIDTH) -> int:
    """How many entries of a legend stand side by side within ``width`` inches."""
    longest = max(map(len, names), default=0)
    return max(1, int(width / (0.4 + 0.055 * longest)))


@contextmanager
def paper_style() -> Iterator[None]:
    """Matplotlib's settings for figures at paper width."""
    with mpl.rc_context(_RC):
        yield


def new_figure(width: float, height: float, **subplots: Any) -> tuple[Figure, Any]:
    """A figure that no window system knows of, and its axes as a 2-D array; call within ``paper_style``."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(squeeze=False, **subplots)
