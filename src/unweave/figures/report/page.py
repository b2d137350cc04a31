"""The report's page: one HTML file that needs nothing else, neither a network nor its neighbours."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

import pandas as pd
import yaml

from unweave.figures.papers.paper import Exhibit
from unweave.figures.report import tables
from unweave.figures.report.draw import Drawn
from unweave.figures.report.facts import facts, summary
from unweave.figures.report.labels import U_GIVEN, full_caption, label_note, modes_by_method
from unweave.figures.report.scores import file_names, score_tables
from unweave.study import Results
from unweave.training.spec import installed_versions

SCORES, SCORES_U_GIVEN = "scores", "scores-u-given"
FAILURES = "tables/failures.csv"
_ERROR = 500  # characters of an error on the page; the file has it all
# What decides figures, next to what decides runs.
_DRAWN_WITH = ("matplotlib", "pandas", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Chapter:
    """What there is of one paper."""

    name: str
    title: str
    drawn: tuple[Drawn, ...]
    absent: tuple[tuple[Exhibit, str], ...]
    failed: tuple[tuple[Exhibit, str], ...]


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own; ``entries`` are places within: id and title.

    In the contents, a title is shown up to its colon.
    """

    id: str
    title: str
    body: str
    entries: tuple[tuple[str, str], ...] = ()


def page(
    results: Results, scores: Mapping[str, pd.DataFrame], chapters: Sequence[Chapter], command: str
) -> str:
    """The page as text; ``scores`` are from ``median_scores``, those with u given as ``SCORES_U_GIVEN``."""
    modes = modes_by_method(results.table)
    sections = [
        _summary(results, label_note(modes)),
        _scores(SCORES, "Scores", "", scores[SCORES]),
        _scores(
            SCORES_U_GIVEN, "Scores with u given: made from the true labels", U_GIVEN, scores[SCORES_U_GIVEN]
        ),
        *(_paper(chapter, modes) for chapter in chapters if chapter.drawn),
        _failed_exhibits(chapters),
        _absent_exhibits(chapters),
        _failures(results),
        _making(results, command),
    ]
    shown = [section for section in sections if section.body]
    return _document(f"{results.name}: report of a study", shown)


def links(files: Sequence[str]) -> str:
    """Links to files beside the page, named by their kind, or if there are several of a kind by their name."""
    kinds = [file.rpartition(".")[2].upper() for file in files]
    names = kinds if len(set(kinds)) == len(kinds) else [file.rpartition("/")[2] for file in files]
    found = (f'<a href="{escape(file)}">{escape(name)}</a>' for file, name in zip(files, names, strict=True))
    return f'<p class="files">{" ".join(found)}</p>'


def failure_table(results: Results) -> pd.DataFrame:
    """One row per failed run."""
    return pd.DataFrame(results.failures, columns=["run", "data", "method", "strength", "seed", "error"])


# --- the sections, in order ----------------------------------------------------------------------


def _summary(results: Results, note: str) -> Section:
    body = f"<p>{escape(summary(results))}</p>"
    if note:
        body += f'<p class="note">{escape(note)}</p>'
    if not results.table.empty:
        body += f'<dl class="facts">{_pairs(facts(results))}</dl>'
    return Section("summary", "Summary", body)


def _scores(name: str, title: str, note: str, scores: pd.DataFrame) -> Section:
    if scores.empty:
        return Section(name, title, "")
    body = [
        f'<p class="note">{escape(note)}</p>' if note else "",
        "<p>The median of each method over all strengths and seeds; below it the 95 % bootstrap interval of the "
        "median. Where the study varies further settings, each has its row. A column's heading sorts by it.</p>",
        links(file_names(name)),
    ]
    entries = []
    for place, (condition, table) in enumerate(score_tables(scores)):
        entries.append((f"{name}-{place}", condition))
        body.append(f'<h3 id="{name}-{place}">{escape(condition)}</h3>{table}')
    return Section(name, title, "".join(body), tuple(entries))


def _paper(chapter: Chapter, modes: Mapping[str, set[str]]) -> Section:
    body = []
    for drawn in chapter.drawn:
        exhibit = drawn.exhibit
        body.append(
            f'<article id="exhibit-{escape(exhibit.name)}"><h3>{escape(exhibit.title)}</h3>'
            f'<p class="source">{escape(exhibit.source)}</p><figure>{drawn.body}'
            f"<figcaption>{escape(full_caption(exhibit, modes))}</figcaption></figure>"
            f"{links(tuple(drawn.files))}</article>"
        )
    entries = tuple((f"exhibit-{drawn.exhibit.name}", drawn.exhibit.title) for drawn in chapter.drawn)
    return Section(f"paper-{chapter.name}", chapter.title, "".join(body), entries)


def _failed_exhibits(chapters: Sequence[Chapter]) -> Section:
    rows = [_told(exhibit, error) for chapter in chapters for exhibit, error in chapter.failed]
    return Section("failed", "Could not be made", _named_table(rows, "Error"))


def _absent_exhibits(chapters: Sequence[Chapter]) -> Section:
    rows = [_told(exhibit, reason) for chapter in chapters for exhibit, reason in chapter.absent]
    return Section("absent", "Not in this study", _named_table(rows, "Reason"))


def _told(exhibit: Exhibit, why: str) -> tuple[str, str, str]:
    return exhibit.title, exhibit.source, why


def _named_table(rows: list[tuple[str, str, str]], why: str) -> str:
    return tables.html_table(pd.DataFrame(rows, columns=["What", "Source", why]), why) if rows else ""


def _failures(results: Results) -> Section:
    if not results.failures:
        return Section("failures", "Failed runs", "")
    shown = failure_table(results).assign(error=lambda table: table["error"].str.slice(0, _ERROR))
    body = links((FAILURES,)) + tables.html_table(shown, "Failed runs")
    return Section("failures", "Failed runs", body)


def _making(results: Results, command: str) -> Section:
    versions = installed_versions() | {name: importlib.metadata.version(name) for name in _DRAWN_WITH}
    spec = yaml.safe_dump(results.spec, sort_keys=False, allow_unicode=True) if results.spec else ""
    body = f"<p>This report was made by</p><pre>{escape(command)}</pre><p>with these versions:</p>"
    body += f'<dl class="facts">{_pairs(list(versions.items()))}</dl>'
    if spec:
        body += f"<details><summary>The study's specification</summary><pre>{escape(spec)}</pre></details>"
    return Section("making", "How it was made", body)


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)


# --- the whole -----------------------------------------------------------------------------------


def _document(title: str, sections: Sequence[Section]) -> str:
    style, script = _resource("page.css"), _resource("page.js")
    # Nothing is fetched, and of scripts only ours runs, whatever the names and errors of a study hold.
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    contents = "".join(_contents(section) for section in sections)
    parts = "".join(
        f'<section id="{section.id}"><h2>{escape(section.title)}</h2>{section.body}</section>\n'
        for section in sections
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n'
        f'<body>\n<a class="skip" href="#report">Skip the contents</a>\n'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f'<main id="report">\n<h1>{escape(title)}</h1>\n{parts}</main>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _contents(section: Section) -> str:
    inner = "".join(f'<li><a href="#{escape(id)}">{escape(title)}</a></li>' for id, title in section.entries)
    inner = f"<ul>{inner}</ul>" if inner else ""
    return f'<li><a href="#{section.id}">{escape(section.title.partition(":")[0])}</a>{inner}</li>'


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
