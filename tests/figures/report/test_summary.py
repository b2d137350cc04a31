"""What the head of a report says of a study."""

import pandas as pd
import pytest

from unweave.analyses import simulate_results
from unweave.figures.papers import PAPERS
from unweave.figures.report.summary import facts, reduced_protocol
from unweave.study import Results, load_study


def test_the_report_says_how_many_points_of_how_many_rows():
    table = simulate_results(data=["dsprites", "coil20"], methods=["beta_vae"], seeds=1, strengths=1)
    assert "Points" not in dict(facts(Results("s", table.assign(train_points=pd.NA))))
    small = table["data"] == "coil20"
    table = table[table["metric"].isin(["mig", "sap"])].assign(train_points=10_000, data_rows=737_280)
    table.loc[small, ["train_points", "data_rows"]] = [960, 1440]
    learns = table["metric"] == "sap"
    table["test_points"] = pd.array([pd.NA] * len(table), dtype="Int64")
    table.loc[learns, "test_points"] = 5_000
    table.loc[learns & small, "test_points"] = 480
    lines = dict(facts(Results("s", table)))["Points"].splitlines()
    assert sorted(lines[0].removeprefix("dSprites: ").split("; ")) == [
        "10,000 + 5,000 points of 737,280 rows (SAP)",
        "10,000 points of 737,280 rows (MIG)",
    ]
    assert "960 + 480 points of 1,440 rows (SAP)" in lines[1]


def reduced(reports, method="beta_vae", steps=500, seeds=2, points=400):
    table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=seeds, strengths=1)
    spec = {"reports": reports, "evaluation": {"num_train": points}}
    return reduced_protocol(Results("s", table.assign(steps=steps, method=method), spec=spec))


NOT_THE_PAPER = "The numbers below are what these methods do by this protocol, not the paper's results."


def test_a_reduced_protocol_is_said_with_what_the_paper_has():
    assert reduced(["locatello"], steps=300_000, seeds=50, points=10_000) == ""
    assert reduced(["ranking", "locatello"]) == (
        "A reduced protocol: 500 steps (300,000), 400 points (10,000), 2 seeds (50); in brackets what "
        f"Locatello et al. have. {NOT_THE_PAPER}"
    )


def test_the_paper_of_a_reduced_protocol_is_that_of_the_study():
    assert reduced(["mita", "ranking"], points=10_000) == (
        f"A reduced protocol: 500 steps (300,000), 2 seeds (10); in brackets what Mita et al. have. {NOT_THE_PAPER}"
    )
    assert reduced(["yang", "ranking"], method="vae", steps=300_000, points=10_000) == (
        f"A reduced protocol: 2 seeds (10); in brackets what Yang et al. have. {NOT_THE_PAPER}"
    )
    # Papers that state no numbers, or not of these methods.
    for reports, method, source in (
        (["kumar", "ranking"], "dip_vae_i", "Kumar et al."),
        (["yang", "multistage"], "infogan", "Yang et al."),
        (["multistage"], "ms_vae", "Srivastava et al."),
    ):
        assert reduced(reports, method=method) == (
            f"The study has 500 steps, 400 points, 2 seeds; {source} state no number of these. {NOT_THE_PAPER}"
        )
    assert reduced(["ranking"]) == reduced([]) == reduced(["of a package that is not installed"]) == ""


@pytest.mark.parametrize("name", ["locatello", "mita", "yang"])
def test_what_a_paper_states_is_what_its_study_has(name):
    protocol = PAPERS[name].protocol
    study, _ = load_study(name)
    assert study.training.steps == protocol.steps
    assert study.evaluation.num_train == protocol.points
    assert {"seed": {"range": protocol.seeds}} in study.runs["product"]
