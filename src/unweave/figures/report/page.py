"""The report's page: one HTML file that needs nothing else, neither a network nor the files beside it.

What the page shows is gathered here as values; how it is written is in the template ``page.html``, which escapes
every one of them.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import pandas as pd
import yaml
from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from unweave.figures.papers.paper import Exhibit
from unweave.figures.report.exhibits import DrawnExhibit
from unweave.figures.report.summary import (
    U_GIVEN,
    facts,
    full_caption,
    label_modes,
    label_note,
    reduced_protocol,
    study_summary,
)
from unweave.figures.report.tables import page_table, score_paths, score_tables
from unweave.study import Results
from unweave.training.spec import installed_versions

SCORES, SCORES_U_GIVEN = "scores", "scores-u-given"
FAILURES = "tables/failures.csv"
_WITHIN = {"CSV": "text/csv", "TEX": "text/plain"}  # kinds of files that the page holds
_ERROR_LENGTH = 500  # characters of an error on the page; the file has it all
# What decides figures, next to what decides runs.
_DRAWN_WITH = ("matplotlib", "pandas", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Chapter:
    """A paper's exhibits: those that were drawn, and with the reason those that the study lacks or that failed."""

    name: str
    title: str
    drawn: tuple[DrawnExhibit, ...]
    absent: tuple[tuple[Exhibit, str], ...]
    failed: tuple[tuple[Exhibit, str], ...]


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading.

    Parameters
    ----------
    kind
        the macro of the template that writes it.
    id, title
        of the heading; the contents show the title up to its colon.
    content
        what the macro takes.
    entries
        id and title of what is within, for the contents.
    """

    kind: Literal["summary", "scores", "explorers", "paper", "listing", "making"]
    id: str
    title: str
    content: Any
    entries: tuple[tuple[str, str], ...] = ()

    @property
    def short_title(self) -> str:
        """The title up to its colon."""
        return self.title.partition(":")[0]


@dataclass(frozen=True)
class Link:
    """A file beside the page; a table is also within the page, for a reader who has nothing else."""

    path: str
    text: str
    data: str = ""

    @property
    def name(self) -> str:
        """The name under which a reader saves it."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class ReportPage:
    """A page in which models can be explored: a file beside the report, and within it for who has nothing else.

    Parameters
    ----------
    path
        relative to the report's folder; "" if it could not be written.
    title
        what it shows.
    problem
        why it could not be written.
    html
        the whole page, for a report that holds it; "" for a link alone.
    scripts, styles
        the hashes of its scripts and style sheets ("sha256-..."), which the report's policy has to allow.
    """

    path: str
    title: str
    problem: str = ""
    html: str = ""
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()

    @property
    def html_json(self) -> str:
        """The page as a JSON string in which no ``<`` is left, so that nothing in it ends the element that holds it."""
        return json.dumps(self.html).replace("<", "\\u003c")


def render_page(
    results: Results,
    scores: Mapping[str, pd.DataFrame],
    chapters: Sequence[Chapter],
    files: Mapping[str, bytes],
    command: str,
    pages: Sequence[ReportPage] = (),
) -> str:
    """The page as text.

    Parameters
    ----------
    results
        of a study.
    scores
        from ``median_scores``: under ``SCORES``, and those with u given under ``SCORES_U_GIVEN``.
    chapters
        one per paper.
    files
        the contents of the files beside the page, by their path relative to it.
    command
        what a reader types to write the report again.
    pages
        that stand beside the report.
    """
    modes = label_modes(results.table)
    sections = [
        _summary_section(results, label_note(modes)),
        _score_section(SCORES, "Scores", "", scores[SCORES], files),
        _score_section(
            SCORES_U_GIVEN,
            "Scores with u given: computed from the true labels",
            U_GIVEN,
            scores[SCORES_U_GIVEN],
            files,
        ),
        Section("explorers", "explorers", "Explore models", list(pages)) if pages else None,
        *(_paper_section(chapter, modes) for chapter in chapters if chapter.drawn),
        _exhibit_list("failed", "Could not be drawn", "Error", [pair for c in chapters for pair in c.failed]),
        _exhibit_list("absent", "Not in this study", "Reason", [pair for c in chapters for pair in c.absent]),
        _failure_section(results, files),
        _making_section(results, command),
    ]
    style, script = _resource("page.css"), _resource("page.js")
    return _template().render(
        title=results.spec.get("title") or f"{results.name}: report of a study",
        sections=[section for section in sections if section is not None],
        policy=_policy(style, script, [page for page in pages if page.html]),
        style=style,
        script=script,
    )


def _policy(style: str, script: str, pages: Sequence[ReportPage]) -> str:
    """Nothing is fetched, and of scripts only ours run, whatever the names and errors of a study hold.

    A page within the report inherits its policy, so that has to allow what those pages need.
    """

    def sources(own: str, theirs: Iterable[str]) -> str:
        return " ".join(f"'{source}'" for source in dict.fromkeys([_digest(own), *theirs]))

    styles = sources(style, (one for page in pages for one in page.styles))
    scripts = sources(script, (one for page in pages for one in page.scripts))
    blobs = (" blob:", "; worker-src blob:") if pages else ("", "")
    return f"default-src 'none'; img-src data:{blobs[0]}; style-src {styles}; script-src {scripts}{blobs[1]}"


def failure_table(results: Results) -> pd.DataFrame:
    """One row per failed run."""
    return pd.DataFrame(results.failures, columns=["run", "data", "method", "strength", "seed", "error"])


# --- the sections, in order ----------------------------------------------------------------------


def _summary_section(results: Results, note: str) -> Section:
    content = {
        "text": study_summary(results),
        "label_note": note,
        "caveat": "" if results.table.empty else reduced_protocol(results),
        "facts": [] if results.table.empty else facts(results),
    }
    return Section("summary", "summary", "Summary", content)


def _score_section(
    name: str, title: str, note: str, scores: pd.DataFrame, files: Mapping[str, bytes]
) -> Section | None:
    if scores.empty:
        return None
    tables = [(f"{name}-{index}", *pair) for index, pair in enumerate(score_tables(scores))]
    content = {"note": note, "links": _links(score_paths(name), files), "tables": tables}
    return Section("scores", name, title, content, tuple((id, condition) for id, condition, _ in tables))


def _paper_section(chapter: Chapter, modes: Mapping[str, set[str]]) -> Section:
    content = [
        (
            f"exhibit-{drawn.exhibit.name}",
            drawn,
            full_caption(drawn.exhibit, modes),
            _links(drawn.files, drawn.files),
        )
        for drawn in chapter.drawn
    ]
    entries = tuple((id, drawn.exhibit.title) for id, drawn, *_ in content)
    return Section("paper", f"paper-{chapter.name}", chapter.title, content, entries)


def _exhibit_list(id: str, title: str, heading: str, pairs: list[tuple[Exhibit, str]]) -> Section | None:
    if not pairs:
        return None
    rows = [(exhibit.title, exhibit.source, reason) for exhibit, reason in pairs]
    table = page_table(pd.DataFrame(rows, columns=["What", "Source", heading]), heading)
    return Section("listing", id, title, {"links": [], "table": table})


def _failure_section(results: Results, files: Mapping[str, bytes]) -> Section | None:
    if not results.failures:
        return None
    shown = failure_table(results).assign(error=lambda table: table["error"].str.slice(0, _ERROR_LENGTH))
    content = {"links": _links([FAILURES], files), "table": page_table(shown, "Failed runs")}
    return Section("listing", "failures", "Failed runs", content)


def _making_section(results: Results, command: str) -> Section:
    versions = installed_versions() | {name: importlib.metadata.version(name) for name in _DRAWN_WITH}
    spec = yaml.safe_dump(results.spec, sort_keys=False, allow_unicode=True) if results.spec else ""
    content = {"command": command, "versions": list(versions.items()), "spec": spec}
    return Section("making", "making", "How it was produced", content)


def _links(paths: Sequence[str] | Mapping[str, Any], files: Mapping[str, bytes]) -> list[Link]:
    """Files named by their kind, or if there are several of a kind by their name; tables with their content."""
    kinds = [path.rpartition(".")[2].upper() for path in paths]
    short = len(set(kinds)) == len(kinds)
    links = []
    for path, kind in zip(paths, kinds, strict=True):
        data = ""
        if kind in _WITHIN and path in files:
            data = f"data:{_WITHIN[kind]};base64,{base64.b64encode(files[path]).decode()}"
        links.append(Link(path, kind if short else path.rpartition("/")[2], data))
    return links


# --- the template --------------------------------------------------------------------------------


@cache
def _template() -> Template:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
