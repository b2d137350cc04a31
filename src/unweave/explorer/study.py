"""Pages for the report of a study: of each data set the run with the best score, and the one chosen without labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from unweave.analyses.runs import DISENTANGLEMENT_METRICS, main_runs
from unweave.analyses.selection import UNSUPERVISED_CHOICES
from unweave.errors import UnweaveError
from unweave.explorer.page import page_sources, write_page
from unweave.figures.papers.models import load_model
from unweave.figures.report.page import ReportPage
from unweave.figures.style import data_name, metric_name
from unweave.study import Results
from unweave.study.results import select
from unweave.training import load

FOLDER = "explorer"
_MOST_WITHIN = 20_000_000  # bytes of the pages that a report holds
_LABELLED = ("mig", *(metric for metric in DISENTANGLEMENT_METRICS if metric != "mig"))


@dataclass(frozen=True)
class _Choice:
    """A run of a study, and why it is shown."""

    run: str
    reason: str


def write_study_pages(results: Results, out: Path | str) -> list[ReportPage]:
    """Write ``out/explorer/DATA.html`` for every data set of a study.

    The report holds the pages too, so that it can be sent alone. Once they are more than 20 MB together, which few mail
    servers take, later ones are only links to their files.

    A page has the run with the largest score (of the first of MIG, ... that the study has) and the run that would be
    chosen without labels (UDR, or else the ELBO). Where a run cannot be shown, because its weights or its data are not
    here or a page cannot execute its network, the reason stands in the place of the page.

    Parameters
    ----------
    results
        of a study.
    out
        the report's folder.

    Returns
    -------
    list of ReportPage
        for :func:`unweave.figures.write_report`.

    Examples
    --------
    >>> table = uw.analyses.simulate_results(["dsprites"], ["beta_vae"], seeds=2)
    >>> write_study_pages(uw.study.Results("simulated", table), "report")  # scores only: there are no models
    []
    """
    if results.runs is None or results.table.empty:
        return []
    pages: list[ReportPage] = []
    scripts, styles = page_sources()
    room = _MOST_WITHIN
    for number, (data, rows) in enumerate(results.table.groupby("data", sort=False), start=1):
        choices = list(_choices(rows))
        if not choices:
            continue
        slug = re.sub(r"[^A-Za-z0-9]+", "-", data_name(str(data))).strip("-") or "data"
        name = f"{FOLDER}/{number}-{slug}.html"
        title = f"{data_name(str(data))}: {'; '.join(f'{one.reason} {one.run}' for one in choices)}"
        try:
            folders = [results.runs / run for run in dict.fromkeys(one.run for one in choices)]
            _, images = load_model(folders[0], str(data))
            path = write_page([load(folder) for folder in folders], Path(out) / name, images)
        except UnweaveError as error:
            pages.append(ReportPage("", title, str(error)))
        else:
            html = path.read_text(encoding="utf-8")
            if len(html) > room:
                pages.append(ReportPage(name, title))
            else:
                room -= len(html)
                pages.append(ReportPage(name, title, "", html, scripts, styles))
    return pages


def _choices(rows: pd.DataFrame) -> Iterator[_Choice]:
    """The best run and the chosen one of one data set."""
    for metrics, word in ((_LABELLED, "best by"), (UNSUPERVISED_CHOICES, "chosen without labels by")):
        for metric in metrics:
            of_metric = rows[rows["metric"] == metric]
            if of_metric.empty:
                continue
            scores = select(main_runs(of_metric), metric).dropna(subset="value")
            if not scores.empty:
                run = str(scores["run"].iloc[int(scores["value"].to_numpy().argmax())])
                yield _Choice(run, f"{word} {metric_name(metric)}")
                break
