"""What the results of a full study cost: 12,600 runs, 554,400 scores, on one core.

Every measurement is in a process of its own, so that its peak of memory is its own too (with Python, the libraries and
the table in it). Seconds are the processor's, so that other work on the machine counts little. The goal is less than
a minute and 2 GB for loading everything and writing the whole report.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GOAL_SECONDS, GOAL_GIGABYTES = 60, 2.0


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = write_study(folder)
        print(f"\nA study of {runs:,} runs")
        print(f"  {'':<52}{'seconds':>9}{'of it drawing':>15}{'peak GB':>9}")
        show("load the table", measure(folder, "load"))
        show("plan it (goal: 2 s)", measure(folder, "plan"))
        show("its status, half done (goal: 1 s)", measure(folder, "status"))
        exhibits = json.loads(call(folder, "list"))
        found = {exhibit: measure(folder, "exhibit", exhibit) for exhibit in exhibits}
        for exhibit, told in sorted(found.items(), key=lambda item: -item[1]["seconds"]):
            show(exhibit, told)
        told = measure(folder, "report")
        show("load, and write the whole report", told)
        met = told["seconds"] < GOAL_SECONDS and told["gigabytes"] < GOAL_GIGABYTES
        print(f"  the goal of {GOAL_SECONDS} s and {GOAL_GIGABYTES:g} GB is {'met' if met else 'MISSED'}")


def write_study(folder: Path) -> int:
    from unweave.analyses import simulate_results
    from unweave.study.results import TABLE

    table = simulate_results()
    table.to_parquet(folder / TABLE)
    return int(table["run"].nunique())


def show(name: str, told: dict[str, Any]) -> None:
    drawing = f"{told['drawing']:.2f}" if "drawing" in told else ""
    note = f"  {told['note']}" if "note" in told else ""
    print(f"  {name:<52}{told['seconds']:>9.2f}{drawing:>15}{told['gigabytes']:>9.2f}{note}", flush=True)


# --- in a process of its own ---------------------------------------------------------------------


def measure(folder: Path, *what: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(call(folder, *what))
    return told


def call(folder: Path, *what: str) -> str:
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, __file__, str(folder), *what]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **one_thread})
    if done.returncode:
        raise SystemExit(f"{' '.join(what)} failed:\n{done.stderr}")
    return done.stdout


def child(folder: Path, what: str, name: str = "") -> dict[str, Any] | list[str]:
    import pandas  # noqa: F401  (imports are not what is measured)

    from unweave.figures.papers import PAPERS
    from unweave.study import load_results

    exhibits = {one.name: one for paper in PAPERS.values() for one in paper.exhibits}
    if what == "list":
        return list(exhibits)
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "load": lambda: timed(lambda: load_results(folder)),
        "plan": lambda: timed(plan_study),
        "status": lambda: timed_status(folder),
        "exhibit": lambda: exhibit(folder, exhibits[name]),
        "report": lambda: timed(lambda: report(folder)),
    }
    told = work[what]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**told, "gigabytes": peak * (1 if sys.platform == "darwin" else 1024) / 1e9}


def exhibit(folder: Path, one: Any) -> dict[str, Any]:
    """Seconds from the table to the files' contents, and how many of them go into drawing."""
    from dataclasses import replace

    from unweave.figures.report.exhibits import draw_exhibit
    from unweave.study import NotInStudyError, Results, load

    results = Results("simulated", load(folder))
    try:
        start = time.process_time()
        made = one.make(results)
        middle = time.process_time()
    except NotInStudyError:
        return {"seconds": time.process_time() - start, "note": "not in this study"}
    draw_exhibit(replace(one, make=lambda _: made), results, ("pdf", "png"))
    end = time.process_time()
    return {"seconds": end - start, "drawing": end - middle}


def report(folder: Path) -> None:
    from unweave.figures.report import write_report
    from unweave.study import Results, load

    write_report(Results("simulated", load(folder)), folder / "report")


def plan_study() -> Any:
    from unweave.study.planning import plan
    from unweave.study.spec import load_study

    study, source = load_study("locatello")
    return plan(study, source)


def timed_status(folder: Path) -> dict[str, Any]:
    """The time of looking at a study of which every other run is done."""
    from unweave.study.folder import StudyFolder
    from unweave.study.status import status

    plan = plan_study()
    started = StudyFolder(folder / "root", plan.study.name, plan)
    started.write()
    for job in plan.jobs[::2]:
        place = started.run(job.identity)
        place.mkdir(parents=True)
        (place / started.done_file).write_text("{}")
    return timed(lambda: status(started))


def timed(work: Callable[[], object]) -> dict[str, Any]:
    start = time.process_time()
    work()
    return {"seconds": time.process_time() - start}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(child(Path(sys.argv[1]), *sys.argv[2:])))
    else:
        main()
