"""Figures 2 to 4, 15 and 16: the total correlation of mean and sampled codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from unweave.analyses.total_correlation import (
    mean_and_sampled,
    share_above,
    total_correlation_by_strength,
)
from unweave.analyses.variants import method_variants
from unweave.figures.papers.panels import counted, panels_in_turn
from unweave.figures.papers.paper import Exhibit
from unweave.figures.papers.plots import (
    LEAST_NATS,
    check_several,
    cloud,
    log_axis,
    strength_lines,
    widen,
)
from unweave.figures.style import data_name, paper_style
from unweave.study import NotInStudyError, Results


def _against_strength(representation: str, without: Sequence[str]) -> Callable[[Results], Figure]:
    def make(results: Results) -> Figure:
        medians = total_correlation_by_strength(results.table, representation, without)
        check_several(medians["strength_index"], "strength of any method")
        names = [name for name in results.table["data"].unique() if name in set(medians["data"])]
        methods = method_variants(medians)
        with paper_style():
            figure, panels = panels_in_turn(
                [data_name(name) for name in names],
                columns=4,
                height=1.35,
                gaps=(0.36, 0.5),
                ticks=0.27,
                methods=methods,
                note=f"each point: the median of {counted(medians['n'], 'runs')}",
                xlabel="regularisation strength (1 = smallest)",
                ylabel=f"total correlation, {representation} (nats)",
            )
            for panel, name in zip(panels, names, strict=True):
                strength_lines(panel, medians[medians["data"] == name], methods)
                panel.set_xticks(np.arange(1, medians["strength_index"].max() + 1))
                if not without:
                    log_axis(panel, "y")
                else:
                    panel.set_ylim(bottom=min(0, panel.get_ylim()[0]))
                    widen(panel, LEAST_NATS)
        return figure

    return make


def _mean_against_sampled(results: Results) -> Figure:
    runs = mean_and_sampled(results.table)
    shares = share_above(runs).set_index("data")
    runs = runs[(runs["mean"] > 0) & (runs["sampled"] > 0)]
    if runs.empty:
        raise NotInStudyError("no run has a total correlation above 0")
    names, methods = runs["data"].unique().tolist(), method_variants(runs)
    with paper_style():
        figure, panels = panels_in_turn(
            [data_name(name) for name in names],
            columns=4,
            height=1.28,
            gaps=(0.36, 0.5),
            ticks=0.29,
            methods=methods,
            note=f"each point: one run; {counted(runs.groupby('data').size(), 'runs')} per panel",
            xlabel="total correlation, sampled (nats)",
            ylabel="total correlation, mean (nats)",
            handle="dot",
        )
        low, high = runs[["mean", "sampled"]].min().min() / 1.5, runs[["mean", "sampled"]].max().max() * 1.5
        for panel, name in zip(panels, names, strict=True):
            panel.plot([low, high], [low, high], color="0.6", linewidth=0.7, zorder=0)
            cloud(panel, runs[runs["data"] == name], "sampled", "mean", methods)
            panel.set(xlim=(low, high), ylim=(low, high))
            log_axis(panel, "x")
            log_axis(panel, "y")
            share = shares.loc[name]
            of_data = runs[runs["data"] == name]
            above = int((of_data["mean"] > of_data["sampled"]).sum())
            text = f"above: {above} of {len(of_data)}"
            if np.isfinite(share["low"]) and share["low"] < share["high"]:
                text += f"\n{100 * share['low']:.0f} to {100 * share['high']:.0f} %"
            panel.text(0.97, 0.03, text, transform=panel.transAxes, fontsize=6, ha="right", va="bottom")
    return figure


_LINES = (
    "Gaussian total correlation of {} codes, in nats. Each point is the median over the runs (seeds) of a method at "
    "one strength; the strengths of each method are numbered from the smallest, as their scales differ. Thin bars: 95% "
    "bootstrap interval of the median over seeds; wide pale bars: the middle half of the runs."
)
EXHIBITS = (
    Exhibit(
        "locatello-fig02-total-correlation-sampled",
        "Total correlation of the sampled codes against strength",
        "Locatello et al., Figure 2",
        _LINES.format("sampled") + " Without AnnealedVAE.",
        _against_strength("sampled", ("annealed_vae",)),
    ),
    Exhibit(
        "locatello-fig03-total-correlation-mean",
        "Total correlation of the mean codes against strength",
        "Locatello et al., Figure 3",
        _LINES.format("mean") + " Without AnnealedVAE.",
        _against_strength("mean", ("annealed_vae",)),
    ),
    Exhibit(
        "locatello-fig04-total-correlation-mean-sampled",
        "Total correlation of mean against sampled codes",
        "Locatello et al., Figure 4",
        "Each point is a run, on logarithmic axes; on the grey line both codes have the same total correlation. In the "
        "corner: the share of runs above it, with the 95% bootstrap interval over seeds. Runs with a total correlation "
        "of 0 are counted, but are not on these axes.",
        _mean_against_sampled,
    ),
)
APPENDIX = (
    Exhibit(
        "locatello-fig15-total-correlation-sampled-all",
        "Total correlation of the sampled codes against strength, with AnnealedVAE",
        "Locatello et al., Figure 15",
        _LINES.format("sampled") + " All methods, on a logarithmic axis.",
        _against_strength("sampled", ()),
    ),
    Exhibit(
        "locatello-fig16-total-correlation-mean-all",
        "Total correlation of the mean codes against strength, with AnnealedVAE",
        "Locatello et al., Figure 16",
        _LINES.format("mean") + " All methods, on a logarithmic axis.",
        _against_strength("mean", ()),
    ),
)
