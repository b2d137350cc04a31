"""How figures of studies look: one colour per method everywhere, names as in the papers, paper-width text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

WIDTH = 6.75  # inches: the text width of the papers

# Okabe and Ito's colours, which the colour-blind can tell apart; the marker tells methods apart in grey.
_BLUE, _ORANGE, _GREEN, _VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
_SKY, _PINK, _YELLOW, _BLACK, _GREY = "#56B4E9", "#CC79A7", "#B8A800", "#000000", "#7F7F7F"
_METHODS: dict[str, tuple[str, str, str]] = {
    "vae": ("VAE", _BLACK, "o"),
    "beta_vae": ("β-VAE", _BLUE, "o"),
    "factor_vae": ("FactorVAE", _ORANGE, "s"),
    "beta_tcvae": ("β-TCVAE", _GREEN, "^"),
    "dip_vae_i": ("DIP-VAE-I", _VERMILION, "D"),
    "dip_vae_ii": ("DIP-VAE-II", _PINK, "v"),
    "annealed_vae": ("AnnealedVAE", _SKY, "P"),
    "full_vae": ("FullVAE", _VERMILION, "D"),
    "ivae": ("iVAE", _ORANGE, "s"),
    "idvae": ("IDVAE", _GREEN, "^"),
    "ss_ivae": ("SS-iVAE", _YELLOW, "X"),
    "ss_idvae": ("SS-IDVAE", _SKY, "P"),
    "gvae": ("GVAE", _PINK, "v"),
    "ml_vae": ("ML-VAE", _GREY, "*"),
    "ada_gvae": ("Ada-GVAE", _BLACK, "<"),
    "ada_ml_vae": ("Ada-ML-VAE", _YELLOW, "h"),
    "ms_vae": ("MS-VAE", _ORANGE, "s"),
    "ms_gan": ("MS-GAN", _GREEN, "^"),
    "ms_flow": ("MS-FLOW", _PINK, "v"),
}
_SPARE = ((_YELLOW, "X"), (_GREY, "*"), (_SKY, "h"), (_BLACK, "<"))
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
_DATA = {
    "dsprites": "dSprites",
    "color_dsprites": "Color-dSprites",
    "noisy_dsprites": "Noisy-dSprites",
    "scream_dsprites": "Scream-dSprites",
    "small_norb": "SmallNORB",
    "cars3d": "Cars3D",
    "shapes3d": "Shapes3D",
    "coil20": "COIL-20",
    "celeba": "CelebA",
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


def method_name(method: str) -> str:
    """A method's name as the papers write it."""
    return _METHODS[method][0] if method in _METHODS else method.replace("_", " ")


def metric_name(metric: str) -> str:
    """A metric's short name, for axes; ``downstream_gbt.100`` becomes "GBT 100"."""
    if metric in _METRICS:
        return _METRICS[metric]
    stem, dot, part = metric.partition(".")
    return f"{_METRICS.get(stem, stem)} {part}".replace("_", " ") if dot else metric.replace("_", " ")


def data_name(data: str) -> str:
    """A data set's name as the papers write it."""
    return _DATA.get(data, data)


def representation_name(representation: str) -> str:
    """Which codes, for people: ``mean_u_given`` becomes "mean (u given)"."""
    kind, _, labels = representation.partition("_u_")
    return f"{kind} (u {labels})" if labels else kind


def look(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Per method its ``color`` and ``marker``: the same in every figure, whatever other methods it shows."""
    spare = itertools.cycle(_SPARE)
    found = {}
    for method in sorted(set(methods), key=order):
        color, marker = _METHODS[method][1:] if method in _METHODS else next(spare)
        found[method] = {"color": color, "marker": marker}
    return found


def order(method: str) -> tuple[int, str]:
    """A sorting key: the papers' order, then the alphabet."""
    known = list(_METHODS)
    return (known.index(method) if method in known else len(known), method)


@contextmanager
def paper_style() -> Iterator[None]:
    """Matplotlib's settings for figures at paper width."""
    with mpl.rc_context(_RC):
        yield


def new_figure(width: float, height: float, **subplots: Any) -> tuple[Figure, Any]:
    """A figure that no window system knows of, and its axes as a 2-D array; call within ``paper_style``."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(squeeze=False, **subplots)
