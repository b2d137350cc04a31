"""The registry of papers."""

import subprocess
import sys

import pandas as pd
import pytest

from unweave.errors import ArgumentError
from unweave.figures.papers import PAPERS, Exhibit, Paper, register_paper
from unweave.figures.report import write_report
from unweave.study import Results
from unweave.study.results import as_table


def test_every_paper_has_exhibits_with_names_of_their_own() -> None:
    names = [exhibit.name for paper in PAPERS.values() for exhibit in paper.exhibits]
    assert len(names) == len(set(names)) > 20
    for key, paper in PAPERS.items():
        assert paper.title
        assert all(exhibit.name.startswith(f"{key}-") for exhibit in paper.exhibits)


def test_a_registered_paper_is_in_a_report(tmp_path) -> None:
    counts = Exhibit("mine-table1", "Rows", "Mine, Table 1", "How many.", lambda r: pd.DataFrame({"n": [7]}))
    register_paper("mine", Paper("Me: A paper of mine", (counts,)))
    try:
        page = write_report(Results("s", as_table([])), tmp_path, ["mine"])
    finally:
        PAPERS.unregister("mine")
    assert "A paper of mine" in page.read_text()
    assert (tmp_path / "tables/mine-table1.csv").read_text() == "n\n7\n"


def test_names_are_refused_without_importing_figures() -> None:
    with pytest.raises(ArgumentError, match="paper = 'locatelo': did you mean 'locatello'"):
        PAPERS.check("locatelo")
    with pytest.raises(ArgumentError, match="there is a paper of this name already"):
        register_paper("kumar", Paper("Another", ()))
    code = "import sys; from unweave.figures.papers.paper import PAPERS; PAPERS.check('yang'); "
    code += "assert 'unweave.figures.papers.yang' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
