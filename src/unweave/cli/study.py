"""``unweave study …``: plan, run, watch and report a grid of runs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.cli.options import Device, Format, Imports, Yes, clean, load_extensions, parse_settings
from unweave.errors import ArgumentError, DataError, unknown_name

app = typer.Typer(
    help="Plan, run, watch and report studies: grids of runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="\b\nExamples:\n  unweave study list\n  unweave study plan locatello-small\n"
    "  unweave study run locatello-small\n"
    "  unweave study status locatello-small --watch\n  unweave study report locatello-small\n"
    '  unweave study results locatello-small --sql "select method, representation, labels, median(value) '
    "from results where metric = 'mig' group by all\"\n"
    "  unweave study run my-study.yaml --set training.steps=5000 --set seed=[0,1,2]",
)

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study's name (see 'unweave study list') or a file.yaml.")
]
Root = Annotated[
    Path, typer.Option("--out", "-o", help="The folder of runs and studies; studies in it share their runs.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Override a field or an axis: training.steps=500."),
]
StudyResults = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        help="A study's name or file.yaml, its folder (FOLDER/STUDY), or stored:NAME (see 'unweave study list').",
    ),
]
SkipStored = Annotated[
    bool,
    typer.Option("--skip-stored", help="Leave out runs whose scores are stored (see 'unweave study store')."),
]
ROOT = Path("studies-out")


@app.command("list")
def list_studies(format: Format = None) -> None:
    """List the studies that come with unweave, and of how many of their runs results are stored.

    Stored results of a script, which no study is of, come last.
    """
    from unweave.study.grid import count_points
    from unweave.study.planning import SHARED
    from unweave.study.source import read
    from unweave.study.spec import Training, known_studies, study_file
    from unweave.study.stored import count_stored, stored_names, stored_title

    rows, studies, stored = [], known_studies(), stored_names()
    for name in studies:
        study = read(study_file(name)).values
        defaults = {key: field.default for key, field in Training.model_fields.items()}
        defaults |= study.get("training", {})
        runs = f"{count_points(study['runs'], SHARED, defaults):,}"
        rows.append((name, runs, count_stored(name) if name in stored else "", study["title"]))
    for name in stored:
        if name not in studies:
            rows.append((name, "", count_stored(name), stored_title(name)))
    output.show_table(["STUDY", "RUNS", "STORED", "WHAT"], rows, format)


@app.command()
def plan(
    study: StudyName,
    settings: Settings = None,
    root: Root = ROOT,
    measure: Annotated[bool, typer.Option(help="Measure for how long it will take.")] = True,
    runs: Annotated[
        bool, typer.Option("--runs", help="List every run; as csv or json, these alone.")
    ] = False,
    skip_stored: SkipStored = False,
    format: Format = None,
    imports: Imports = None,
) -> None:
    """Show what a study will do: its runs, how long they take and how much disk they need. Nothing is trained."""
    checked, source = _load(study, settings, imports)  # before torch is imported
    from unweave.study.estimate import estimate
    from unweave.study.folder import StudyFolder
    from unweave.study.planning import missing_methods, without_runs
    from unweave.study.planning import plan as plan_study
    from unweave.study.storing import stored_runs

    whole = plan_study(checked, source)
    stored = stored_runs(whole)
    chosen = without_runs(whole, stored) if skip_stored else whole
    folder = StudyFolder(root, checked.name, chosen)
    jobs = folder.jobs
    if runs:
        output.show_table(
            ["RUN", "DATA", "METHOD", "STRENGTH", "SEED", "NEEDS"],
            [(j.identity, j.data, j.method, _strength(j), j.seed, _needs(j)) for j in jobs],
            format,
            keys=3,
        )
        if format in ("csv", "json"):  # one document, for programs
            return
    left = folder.pending()
    needed = {stage.identity for job in jobs for stage in job.stages.values()}
    facts = [
        ("study", checked.name),
        ("runs", f"{len(jobs):,}" + (f", {len(needed):,} of them needed by others" if needed else "")),
        ("done already", f"{sum(folder.is_done(job) for job in jobs):,}"),
        *([("stored", _stored_text(len(stored), len(whole.jobs), skip_stored))] if stored else []),
        ("data sets", ", ".join(dict.fromkeys(job.data for job in jobs))),
        ("methods", ", ".join(dict.fromkeys(job.method for job in jobs))),
        ("scores of each run", ", ".join(dict.fromkeys(unit.label for unit in folder.units))),
    ]
    missing = missing_methods(jobs)
    if missing:
        facts.append(("not in this version", ", ".join(missing)))
    absent = _absent(dict.fromkeys(job.data for job in left))
    if absent:
        facts.append(("not on this machine", f"{', '.join(absent)}: unweave data get {' '.join(absent)}"))
    if measure and left and not missing:
        facts += estimate(folder, left)
    output.show_facts(facts, format)


def _stored_text(stored: int, planned: int, skipped: bool) -> str:
    what = "left out" if skipped else "--skip-stored leaves them out"
    return f"the scores of {stored:,} of {planned:,} runs are stored; {what}"


def _absent(names: Iterable[str]) -> list[str]:
    """The data sets of these names whose files would have to be downloaded."""
    from unweave.data import registry
    from unweave.data.storage.prepared import data_folder
    from unweave.data.storage.status import status

    known = [registry.find(name) for name in names if name in registry.names()]
    return [each.name for each in known if status(each, data_folder() / each.name).state == "needs download"]


def _strength(job: Any) -> str:
    """In words: of a method without one, none."""
    from unweave.schedules import Schedule, is_schedule

    value = job.hyperparameters.get(job.strength_name)
    if is_schedule(value):
        return str(Schedule.read(job.strength_name, value))
    return "" if math.isnan(job.strength) else f"{job.strength:g}"


def _needs(job: Any) -> str:
    return " ".join(stage.identity for stage in job.stages.values())


ExecutorName = Annotated[str, typer.Option(help="local (processes of this machine) or ray.")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Worker processes.  [default: as measured]", show_default=False)
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads of each.  [default: as measured]", show_default=False)
]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster; without it one is started here.", show_default=False)
]
Storage = Annotated[
    str | None,
    typer.Option(help="Where Ray's nodes meet, if they do not share the folder: s3://…", show_default=False),
]
Report = Annotated[bool, typer.Option(help="Write the report at the end.")]


@app.command()
def run(
    study: StudyName,
    settings: Settings = None,
    root: Root = ROOT,
    executor: ExecutorName = "local",
    processes: Processes = None,
    threads: Threads = None,
    device: Device = "auto",
    address: Address = None,
    storage: Storage = None,
    report: Report = True,
    skip_stored: SkipStored = False,
    imports: Imports = None,
) -> None:
    """Do all runs of a study that are not done yet.

    Ctrl-C or a crash loses nothing: the same command continues. A second command on the same folder, on this
    machine or another that shares it, joins in: it takes runs that no other works on.
    """
    machines = Machines(executor, processes, threads, device, address, storage)
    _run(*_load(study, settings, imports), root, machines, report, skip_stored)


@app.command()
def resume(
    study: StudyName,
    root: Root = ROOT,
    executor: ExecutorName = "local",
    processes: Processes = None,
    threads: Threads = None,
    device: Device = "auto",
    address: Address = None,
    storage: Storage = None,
    report: Report = True,
    skip_stored: SkipStored = False,
    imports: Imports = None,
) -> None:
    """Continue a study as it was started, overridden fields included, and try failed runs again."""
    machines = Machines(executor, processes, threads, device, address, storage)
    started = _load(str(root / _name(study) / "study.yaml"), None, imports)
    _run(*started, root, machines, report, skip_stored, retry=True)


@app.command()
def status(
    study: StudyName,
    root: Root = ROOT,
    watch: Annotated[bool, typer.Option("--watch", help="Update the table until all is done.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    format: Format = None,
) -> None:
    """Show how far a study is: runs done, running, failed and waiting, and what each worker does."""
    from unweave.cli.study_status import as_json, show, watch_status
    from unweave.study.folder import StudyPaths
    from unweave.study.status import status as read_status

    folder = StudyPaths(root, _name(study))
    if watch:
        watch_status(folder)
    elif json:
        output.show_json(as_json(read_status(folder)))
    else:
        show(read_status(folder), format)


@app.command()
def report(
    study: StudyResults,
    root: Root = ROOT,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="The report's folder.  [default: STUDY/report below --out]", show_default=False
        ),
    ] = None,
    imports: Imports = None,
) -> None:
    """Write the report of the runs so far: one HTML file, figures as PDF and PNG, tables as CSV and LaTeX.

    Of studies in a folder that cannot be written, give another folder for the report with --to. The report of stored
    results needs it, and has everything that needs no model.
    """
    load_extensions(imports)
    from unweave.study.stored import is_stored_address
    from unweave.study.storing import open_results

    if is_stored_address(study) and to is None:
        raise ArgumentError("--to", None, f"the report of {study} needs a folder to be written to")
    _report(open_results(study, root), root, to, study)


@app.command("clean")
def clean_runs(
    root: Root = ROOT,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Also runs that no study of the folder has in its plan.")
    ] = False,
    yes: Yes = False,
    format: Format = None,
) -> None:
    """Show what takes space and is not needed any more: leftovers, codes, damaged files; --yes removes it."""
    from unweave.study.clean import removable_runs

    clean(removable_runs(root, orphans=orphans), yes, format)


@app.command()
def claims(
    study: StudyResults,
    root: Root = ROOT,
    paper: Annotated[
        list[str] | None,
        typer.Option(
            help="locatello, kumar, yang or mita; may be repeated.  [default: those that the study reports]",
            show_default=False,
        ),
    ] = None,
    format: Format = None,
) -> None:
    """Show the papers' claims: what the paper says, what the study measured, and a verdict by a stated rule.

    Verdicts are holds, does not hold, not shown (no evidence either way) and not tested (with the reason): two-sided
    tests within seeds at 0.05, with Holm's correction over all tests of a claim.
    """
    from unweave.analyses import claims as judge_claims
    from unweave.analyses.paper_claims.table import PAPER_CLAIMS
    from unweave.study.storing import open_results

    outcome = open_results(study, root)
    papers = paper or [name for name in outcome.spec.get("reports", []) if name in PAPER_CLAIMS] or None
    table = judge_claims(outcome.table, papers)
    if len(set(table["data"]) - {""}) < 2:
        table = table.drop(columns="data")
    rows = [tuple(_claim_cell(value, format) for value in row) for row in table.itertuples(index=False)]
    output.show_table([str(name).upper() for name in table.columns], rows, format)


def _claim_cell(value: Any, format: str | None) -> Any:
    """A cell; a p-value is rounded for people."""
    from unweave.analyses.paper_claims.claim import p_text

    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if format in ("csv", "json") else p_text(value)
    return value


@app.command()
def store(
    study: StudyName,
    root: Root = ROOT,
    to: Annotated[Path, typer.Option("--to", help="The folder of stored tables.")] = Path("studies/results"),
    imports: Imports = None,
) -> None:
    """Store the scores of a study's finished runs in a small file, TO/STUDY.parquet.

    The study is taken as its file is now, and its runs are taken from the folder, whichever study did them. Runs that
    the file has already and the folder has not are kept: so a study is continued on another machine with
    'unweave study run STUDY --skip-stored', and stored there again.
    """
    checked, source = _load(study, None, imports)
    from unweave.study.folder import StudyFolder
    from unweave.study.planning import plan as plan_study
    from unweave.study.storing import store as store_results

    if not (root / "runs").is_dir():
        raise ArgumentError("--out", str(root), "has no folder 'runs': no study was run there")
    stored = store_results(StudyFolder(root, checked.name, plan_study(checked, source)), to)
    total = stored.table["run"].nunique()
    print(
        f"{stored.path}: {total:,} of {stored.planned:,} runs ({stored.added:,} new, {stored.replaced:,} stored again, "
        f"{stored.kept:,} kept), {len(stored.table):,} scores, {output.bytes_text(stored.path.stat().st_size)}"
    )
    if stored.dropped:
        output.show_warning(
            f"{stored.dropped:,} runs that were stored are not of the study as it is now, or were measured otherwise, "
            "and are left out"
        )


@app.command()
def results(
    study: StudyResults,
    root: Root = ROOT,
    sql: Annotated[
        str | None, typer.Option(help="A DuckDB query; the table is called results.", show_default=False)
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="Write the table, or the answer to the query, here.", show_default=False),
    ] = None,
    format: Format = None,
) -> None:
    """Show the results, or query them with SQL. The whole table is in STUDY/results.parquet.

    stored:NAME are results that come with unweave.

    Without SQL: the median over seeds of each score, with the 95 % bootstrap interval of the median, or, of fewer
    than five seeds, their values.
    """
    from unweave.analyses.scores import seed_medians
    from unweave.files import check_can_write, replacing
    from unweave.study.results import query
    from unweave.study.storing import open_results

    if csv is not None:
        check_can_write(csv, "--csv")
    table = open_results(study, root).table
    names = {"value": "median", "n": "runs"}
    answer = query(table, sql) if sql else seed_medians(table).rename(columns=names)
    if not sql and not answer["values"].map(len).any():
        answer = answer.drop(columns="values")
    elif not sql and answer["low"].isna().all():
        answer = answer.drop(columns=["low", "high"])
    says_which = "labels" in (sql or "").lower() or "labels" in answer.columns
    if not says_which and (table["labels"] == "given").any():
        output.show_warning(
            "the answer may mix in scores with u given, of codes computed from the true labels that they are scored "
            "against: group by labels, or leave out those with labels = 'given'"
        )
    if csv is not None:
        with replacing(csv) as temporary:
            (answer if sql else table).to_csv(temporary, index=False)
        print(csv)
        return
    rows = [tuple(_cell(value) for value in row) for row in answer.itertuples(index=False)]
    names_of_rows = [name for name in answer.columns if answer[name].dtype.kind not in "fiu"]
    keys = next(
        (i for i, name in enumerate(answer.columns) if name not in names_of_rows), len(answer.columns)
    )
    output.show_table([str(name).upper() for name in answer.columns], rows, format, keys=max(keys, 1))


def _load(study: str, settings: list[str] | None, imports: list[str] | None) -> tuple[Any, Any]:
    from unweave.study.spec import load_study

    return load_study(study, parse_settings("--set", settings or []), imports or ())


def _name(study: str) -> str:
    from unweave.study.spec import study_name

    return study_name(study)


def _run(
    checked: Any,
    source: Any,
    root: Path,
    machines: Machines,
    report: bool,
    skip_stored: bool,
    retry: bool = False,
) -> None:
    from unweave.figures.papers import PAPERS
    from unweave.study.driver import check_finished, prepare
    from unweave.study.driver import run as run_study

    machines.check()
    for number, name in enumerate(checked.reports):
        try:
            PAPERS.check(name)
        except ArgumentError as error:
            raise DataError(f"{source.line(('reports', number))}: reports.{number}: {error}") from error
    stored: set[str] = set()
    if skip_stored:
        from unweave.study.planning import plan as plan_study
        from unweave.study.storing import stored_runs

        whole = plan_study(checked, source)
        stored = stored_runs(whole)
        print(f"{checked.name}: {_stored_text(len(stored), len(whole.jobs), True)}", flush=True)
    folder = prepare(checked, source, root, stored)
    if retry:
        print(f"{folder.forgive()} failed runs are tried again")
    left = len(folder.pending())
    print(f"{folder.name}: {len(folder.jobs):,} runs, {left:,} to do", flush=True)
    started = time.monotonic()
    outcome = run_study(folder, machines.start(root) if left else None)
    minutes = (time.monotonic() - started) / 60
    finished = sum(folder.is_done(job) for job in folder.jobs)
    print(f"{finished:,} of {len(folder.jobs):,} runs are done ({minutes:.1f} min): {folder.path}")
    try:
        if report and finished:
            _report(outcome, root)
    finally:
        check_finished(outcome)


def _report(outcome: Any, root: Path, to: Path | None = None, address: str | None = None) -> None:
    from unweave.analyses.paper_claims.table import PAPER_CLAIMS
    from unweave.explorer import write_study_pages
    from unweave.figures.report import write_report

    papers = outcome.spec.get("reports", [])
    claims = papers if "reports" in outcome.spec else tuple(PAPER_CLAIMS)
    if outcome.runs is None:
        assert to is not None
        command = f"unweave study report {address} --to {to}"
        output.show_note(
            "stored results have no models: the report is without traversals, loss curves, the list of runs and pages "
            "to explore models"
        )
        print(write_report(outcome, to, papers, claims=claims, command=command))
        return
    command = f"unweave study report {outcome.name} -o {outcome.runs.parent}"
    out = to or outcome.runs.parent / outcome.name / "report"
    pages = write_study_pages(outcome, out)
    print(write_report(outcome, out, papers, command=command, pages=pages))


def _cell(value: Any) -> Any:
    """A cell of a table as Python has it, for every format."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, tuple):
        return ", ".join(f"{one:.4g}" for one in value)
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, int | float | str | None) else str(value)


@dataclass(frozen=True)
class Machines:
    """Who does the runs, as given by the options."""

    executor: str
    processes: int | None
    threads: int | None
    device: str
    address: str | None
    storage: str | None

    def check(self) -> None:
        """Refuse options that do not belong together."""
        if self.executor not in ("local", "ray"):
            raise unknown_name("--executor", self.executor, ("local", "ray"))
        for_ray: dict[str, Any] = {"--address": self.address, "--storage": self.storage}
        unused = for_ray if self.executor == "local" else {"--processes": self.processes}
        for name, value in unused.items():
            if value is not None:
                raise ArgumentError(name, value, f"is not for the executor {self.executor!r}")
        if self.executor == "local":
            from unweave.study.executors import Local

            Local(device=self.device)  # checks it

    def start(self, root: Path) -> Any:
        """The executor."""
        if self.executor == "ray":
            from unweave.study.ray import RayCluster

            return RayCluster(self.address, self.threads or 1, self.device, self.storage)
        from unweave.processes import cores
        from unweave.study.estimate import best_packing
        from unweave.study.executors import Local

        if self.processes is None and self.threads is None:
            processes, threads, _ = best_packing(root)
            return Local(processes, threads, self.device)
        processes = self.processes or max(1, cores() // (self.threads or 1))
        return Local(processes, self.threads or max(1, cores() // processes), self.device)
