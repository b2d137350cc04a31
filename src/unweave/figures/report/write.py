"""The report of a study, written to a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from unweave.analyses.scores import median_scores
from unweave.errors import ArgumentError, UnweaveError
from unweave.figures.papers import PAPERS
from unweave.figures.papers.claims import claim_exhibits
from unweave.figures.report.exhibits import FORMATS, draw_exhibit
from unweave.figures.report.page import (
    FAILURES,
    SCORES,
    SCORES_U_GIVEN,
    Chapter,
    ReportPage,
    failure_table,
    render_page,
)
from unweave.figures.report.tables import csv_text, score_files
from unweave.files import replacing
from unweave.progress import progress
from unweave.study import NotInStudyError, Results

PAGE = "report.html"
RUNS = "runs"  # the chapter of every study whose runs are there
_FILE = re.compile(r'(?:href|data-file)="((?:figures|tables|explorer)/[^"/\\]+)"')


class ReportError(UnweaveError):
    """A report was written, but some of its figures or tables could not be drawn.

    Examples
    --------
    >>> issubclass(uw.figures.ReportError, uw.UnweaveError)
    True
    """


def write_report(
    results: Results,
    out: Path | str,
    papers: Sequence[str] = tuple(PAPERS),
    *,
    claims: Sequence[str] | None = None,
    formats: Sequence[str] = ("pdf", "png"),
    command: str | None = None,
    pages: Sequence[ReportPage] = (),
) -> Path:
    """Draw all figures and tables of the papers that a study's results allow, and write a page that shows them.

    ``out/report.html`` holds everything, opens without a network and needs no file beside it. Also written are
    ``figures/NAME.pdf`` and ``.png``, ``tables/NAME.csv`` and ``.tex``. Each file is replaced whole; those of an
    earlier report that this one lacks are removed once the new page is there. The same results give the same bytes.

    Parameters
    ----------
    results
        of a study.
    out
        the folder.
    papers
        names from ``PAPERS``, in the page's order. What the models do comes first where the study's runs are there.
    claims
        of which papers the claims are judged; by default of ``papers``.
    formats
        of figures: pdf, png, svg. The page holds a PNG in any case.
    command
        what a reader types to make the report again; without it, the call of this function.
    pages
        beside the report that it names, as :func:`unweave.explorer.write_study_pages` writes them.

    Returns
    -------
    Path
        of the page. What the study has no results for is listed there with the reason.

    Raises
    ------
    ReportError
        after everything else is written, if a figure or table could not be drawn for any other reason.

    Examples
    --------
    >>> from unweave.study import Results
    >>> table = uw.analyses.simulate_results(["dsprites"], ["beta_vae", "factor_vae"], seeds=2)
    >>> uw.figures.write_report(Results("simulated", table), "report", papers=[]).name
    'report.html'
    """
    folder = _check(out, formats)
    if results.runs is not None:
        papers = [RUNS, *(name for name in papers if name != RUNS)]
    chapters, errors = _draw_all(results, papers, papers if claims is None else claims, formats)
    scores = {
        SCORES: median_scores(results.table),
        SCORES_U_GIVEN: median_scores(results.table, u_given=True),
    }
    files = _failure_files(results)
    for name, medians in scores.items():
        files |= score_files(medians, name)
    for chapter in chapters:
        for drawn in chapter.drawn:
            files |= drawn.files
    call = f"write_report(results, {str(out)!r}, {tuple(papers)!r})"
    text = render_page(results, scores, chapters, files, command or call, pages)
    target = folder / PAGE
    stale = _linked_files(target) - set(files) - {page.path for page in pages}
    for name, data in files.items():
        _write(folder / name, data)
    _write(target, text.encode(errors="replace"))
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    if errors:
        names = ", ".join(errors)
        first = next(iter(errors.values()))
        raise ReportError(
            f"{target}: written, but without {names} ({type(first).__name__}: {first})"
        ) from first
    return target


def _check(out: Path | str, formats: Sequence[str]) -> Path:
    for kind in formats:
        if kind not in FORMATS:
            raise ArgumentError("formats", kind, f"figures are written as {', '.join(FORMATS)}")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError("out", str(out), "is a file, not a folder")
    return folder


def _draw_all(
    results: Results, papers: Sequence[str], claims: Sequence[str], formats: Sequence[str]
) -> tuple[list[Chapter], dict[str, Exception]]:
    """Every paper's exhibits, drawn or with the reason why not; and the errors by the exhibit's name."""
    chosen = [(name, PAPERS[name].title, PAPERS[name].exhibits) for name in dict.fromkeys(papers)]
    if exhibits_of_claims := claim_exhibits(claims):
        chosen.insert(0, ("claims", "Claims of the papers: what this study says of them", exhibits_of_claims))
    chapters, errors = [], {}
    with progress("Report", sum(len(exhibits) for *_, exhibits in chosen), "exhibits") as advance:
        for name, title, exhibits in chosen:
            drawn, absent, failed = [], [], []
            for exhibit in exhibits:
                try:
                    drawn.append(draw_exhibit(exhibit, results, formats))
                except NotInStudyError as error:
                    absent.append((exhibit, str(error)))
                except Exception as error:  # a mistake in one figure must not cost the reader all others
                    failed.append((exhibit, f"{type(error).__name__}: {error}"))
                    errors[exhibit.name] = error
                advance(1, exhibit.name)
            chapters.append(Chapter(name, title, tuple(drawn), tuple(absent), tuple(failed)))
    return chapters, errors


def _failure_files(results: Results) -> dict[str, bytes]:
    return {FAILURES: csv_text(failure_table(results)).encode(errors="replace")} if results.failures else {}


def _linked_files(page: Path) -> set[str]:
    """The files that an earlier report wrote: those that its page names."""
    try:
        return set(_FILE.findall(page.read_text(encoding="utf-8")))
    except (FileNotFoundError, UnicodeDecodeError):
        return set()


def _write(path: Path, data: bytes) -> None:
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise UnweaveError(f"{path}: cannot be written ({error.strerror or error})") from error
