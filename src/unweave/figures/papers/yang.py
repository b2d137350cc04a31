"""The figures of Yang et al. (2020), and a table of what they show, from any study of correlated posteriors."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from unweave.analyses.correlated_noise import (
    correlation_costs,
    correlation_decline,
    scores_by_correlation,
)
from unweave.analyses.variants import method_variants, with_variant
from unweave.arrays import FloatArray
from unweave.figures.papers import yang_infogan
from unweave.figures.papers.paper import Exhibit, Paper, Protocol
from unweave.figures.papers.plots import (
    LEAST_NATS,
    LEAST_SCORE_SPAN,
    check_several,
    widen,
    widen_errors,
)
from unweave.figures.papers.tables import interval_column, method_column, sort_rows
from unweave.figures.style import (
    WIDTH,
    data_name,
    method_name,
    method_styles,
    metric_name,
    new_figure,
    paper_style,
)  # fmt: skip
from unweave.metrics import METRICS
from unweave.study import NotInStudyError, Results

# Blue without correlation, orange with, as in the paper; then for studies of more than two correlations.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#7F7F7F")
_VIOLIN = 5  # fewer values are drawn as points alone
_COLUMNS = 3
INVARIANCE = "information_invariance"


def violins(results: Results, latent_size: int | None = None, metric: str = "mig") -> Figure:
    """A panel per data set, at each method one violin per correlation of the posterior's noise."""
    rows = scores_by_correlation(results.table, metric, latent_size)
    data, methods = rows["data"].unique().tolist(), list(method_styles(method_variants(rows)))
    colors = _colors(rows)
    levels = list(colors)
    columns = min(_COLUMNS, len(data))
    lines = -(-len(data) // columns)
    tilt: dict[str, Any] = {}
    if columns * len(methods) > 9:
        tilt = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    rng = np.random.default_rng(0)
    with paper_style():
        width, height = WIDTH if columns > 1 else WIDTH / 2, 0.7 + (2.0 if tilt else 1.7) * lines
        figure, grid = new_figure(width, height, nrows=lines, ncols=columns)
        for axes in grid.ravel()[len(data) :]:
            axes.set_visible(False)
        for axes, name in zip(grid.ravel(), data, strict=False):
            groups = rows[rows["data"] == name].groupby(["method", "variant", "correlation"])["value"]
            for (method, variant, level), values in groups:
                slot = (levels.index(level) + 0.5) / len(levels) - 0.5
                x = methods.index((method, variant)) + 0.84 * slot
                _draw_violin(axes, x, values.to_numpy(), 0.76 / len(levels), colors[level], rng)
            axes.set_xticks(range(len(methods)), [method_name(*pair) for pair in methods], **tilt)
            axes.set_xlim(-0.55, len(methods) - 0.45)
            axes.set(title=data_name(name), ylabel=metric_name(metric))
            widen(axes, LEAST_SCORE_SPAN)
        latents = " or ".join(map(str, sorted(rows["latent_size"].unique())))
        _legend(figure, colors, f"{latents} latents")
    return figure


def costs(results: Results, data: str | None = None) -> Figure:
    """KL and total correlation against the reconstruction error, a column per method, on one data set.

    The data set is ``data``, else dSprites, else the first with two correlations.
    """
    runs = correlation_costs(results.table)
    known = runs["data"].unique().tolist()
    name = data or ("dsprites" if "dsprites" in known else known[0])
    runs = runs[runs["data"] == name]
    if runs.empty:
        raise NotInStudyError(f"the study has no method with two values of correlation on {name}")
    latents = runs["latent_size"].mode().iloc[0]
    runs = runs[runs["latent_size"] == latents]
    check_several(runs["reconstruction"], "reconstruction error")
    methods = list(method_styles(method_variants(runs)))
    colors = _colors(runs)
    shown = {"kl": "KL", "total_correlation": "total correlation"}
    with paper_style():
        width = min(WIDTH, 1.1 + 1.6 * len(methods))
        figure, grid = new_figure(width, 3.6, nrows=2, ncols=len(methods), sharex=True, sharey="row")
        for axes, (method, variant) in zip(grid.T, methods, strict=True):
            of_method = runs[(runs["method"] == method) & (runs["variant"] == variant)]
            for level, color in colors.items():
                points = of_method[of_method["correlation"] == level]
                style = {
                    "color": color,
                    "s": 9,
                    "alpha": 0.6,
                    "linewidths": 0,
                    "rasterized": len(points) > 200,
                }
                for panel, quantity in zip(axes, shown, strict=True):
                    panel.scatter(points["reconstruction"], points[quantity], **style)
            axes[0].set_title(method_name(method, variant))
        for panel, label in zip(grid[:, 0], shown.values(), strict=True):
            panel.set_ylabel(f"{label} (nats)")
            widen(panel, LEAST_NATS)
        widen_errors(grid[0, 0])
        figure.supxlabel("reconstruction error (nats)", fontsize=8)
        _legend(figure, colors, f"{data_name(name)}, {latents} latents")
    return figure


def decline_table(results: Results, metric: str = "mig") -> pd.DataFrame:
    """The change of the median score from uncorrelated to correlated noise, per data set and method."""
    rows = correlation_decline(results.table, metric)
    rows = sort_rows(rows, results.table["data"].unique().tolist())
    rows = rows.sort_values("latent_size", kind="stable")
    name = metric_name(metric)
    return pd.DataFrame(
        {
            "Data set": rows["data"].map(data_name),
            "Latents": rows["latent_size"],
            "Method": method_column(rows),
            "s": rows["correlation"],
            f"{name}, s = 0": rows["independent"].round(3),
            f"{name}, correlated": rows["correlated"].round(3),
            "Difference": interval_column(rows, "difference"),
            "p": rows["p"].map(_probability),
            "p, Holm": rows["p_holm"].map(_probability),
            "Runs": rows["n_independent"].astype(str) + " + " + rows["n_correlated"].astype(str),
        }
    ).reset_index(drop=True)


def invariance_table(results: Results) -> pd.DataFrame:
    """Assumption 2 and Theorem 1 in numbers: medians over runs for each data set, method and correlation."""
    rows = with_variant(results.table)
    names = {INVARIANCE: "Gap of Assumption 2"}
    names |= {f"{INVARIANCE}.{part}": label for part, label in METRICS[INVARIANCE].parts.items()}
    rows = rows[rows["metric"].isin(names)]
    if rows.empty:
        raise NotInStudyError(f"the study has no {INVARIANCE!r} of posteriors by correlation")
    setting = ["data", "latent_size", "method", "variant", "correlation"]
    medians = rows.pivot_table("value", setting, "metric", "median").reset_index()
    medians = sort_rows(medians, results.table["data"].unique().tolist())
    runs = rows[rows["metric"] == INVARIANCE].groupby(setting)["run"].nunique().rename("runs").reset_index()
    table = pd.DataFrame(
        {
            "Data set": medians["data"].map(data_name),
            "Latents": medians["latent_size"],
            "Method": method_column(medians),
            "s": medians["correlation"],
        }
    )
    for metric, label in names.items():
        if metric in medians:
            table[label] = medians[metric].round(3)
    return table.assign(Runs=medians.merge(runs, on=setting)["runs"].to_numpy()).reset_index(drop=True)


def _draw_violin(
    axes: Any, x: float, values: FloatArray, width: float, color: str, rng: np.random.Generator
) -> None:
    if len(values) >= _VIOLIN:
        body = axes.violinplot(values, [x], widths=width, showextrema=False)["bodies"][0]
        body.set(facecolor=color, edgecolor=color, alpha=0.35)
    jitter = x + rng.uniform(-0.18, 0.18, len(values)) * width
    many = len(values) > 60
    size = 1.5 if many else 6 if len(values) >= _VIOLIN else 14
    axes.scatter(
        jitter,
        values,
        s=size,
        color=color,
        alpha=0.5 if many else 0.9,
        linewidths=0,
        rasterized=many,
    )
    axes.hlines(np.median(values), x - 0.3 * width, x + 0.3 * width, color="black", linewidth=1.2, zorder=3)


def _colors(rows: pd.DataFrame) -> dict[float, str]:
    return dict(zip(sorted(rows["correlation"].unique()), itertools.cycle(_COLORS), strict=False))


def _legend(figure: Figure, colors: dict[float, str], title: str) -> None:
    handles = [Patch(color=color, alpha=0.7, label=f"s = {level:g}") for level, color in colors.items()]
    figure.legend(
        handles=handles,
        title=title,
        title_fontsize=8,
        loc="outside upper center",
        ncols=len(handles),
        handlelength=1.3,
    )


def _probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


_HOW = (
    "Each point is a run; the line is the median. s is the correlation of the noise of the approximate posterior. Runs "
    "of all strengths of a method are taken together. An axis spans 0.1 at least."
)
_EXHIBITS = (
    Exhibit(
        "yang-fig01-mig",
        "MIG with and without correlated posterior noise",
        "Yang et al., Figure 1",
        _HOW,
        violins,
    ),
    Exhibit(
        "yang-fig02-costs",
        "Reconstruction error, KL term and total correlation",
        "Yang et al., Figure 2",
        "Each point is a run. The KL term is that of the objective, without the constant that correlated noise adds "
        "to the true KL. The total correlation is on the same footing: by the densities of appendix D, which "
        "factorise, or else the exact one less that constant, which is the total correlation of the noise itself. "
        "Axes of nats span half a nat at least, that of errors 5 % of its middle.",
        costs,
    ),
    *yang_infogan.EXHIBITS,
    Exhibit(
        "yang-fig05-mig-20-latents",
        "MIG with and without correlated posterior noise, 20 latents",
        "Yang et al., Figure 5",
        _HOW,
        partial(violins, latent_size=20),
    ),
    Exhibit(
        "yang-table-decline",
        "The decline of MIG under correlated posterior noise",
        "of the numbers in Yang et al., Figures 1 and 5",
        "Medians, their difference with a 95 % bootstrap interval, and the two-sided Mann-Whitney test of no "
        "difference, also with Holm's correction for all rows.",
        decline_table,
    ),
    Exhibit(
        "yang-table-invariance",
        "The information of each code, with and without the others",
        "of Yang et al., Assumption 2 and Theorem 1",
        "Medians over runs, in nats. The gap is the mean over codes of |I(z_j; x | the others) - I(z_j; x)|, 0 if "
        "Assumption 2 holds. Theorem 1 says that I(z; x) less the sum of I(z_j; x), its left side, is the mean total "
        "correlation of q(z|x), which is that of the noise, less that of q(z): its right side, from other draws.",
        invariance_table,
    ),
)
PAPER = Paper(
    "Yang et al.: Towards Better Understanding of Disentangled Representations via Mutual Information",
    _EXHIBITS,
    # They use disentanglement_lib "without tuning", which has these steps and points; InfoGAN is not in it.
    Protocol("Yang et al.", 300_000, 10_000, 10, ("vae", "factor_vae", "beta_tcvae")),
)
