"""What the head of a report says of a study."""

import pandas as pd

from unweave.analyses import simulate_results
from unweave.figures.report.summary import facts, reduced_protocol
from unweave.study import Results


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


def test_a_reduced_protocol_is_said_with_what_the_paper_has():
    table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=50, strengths=1)
    whole = Results("s", table.assign(steps=300_000), spec={"evaluation": {"num_train": 10_000}})
    assert reduced_protocol(whole) == ""
    few = Results("s", table[table["seed"] < 2].assign(steps=500), spec={"evaluation": {"num_train": 400}})
    said = reduced_protocol(few)
    assert said.startswith(
        "A reduced protocol: 500 steps (300,000), 400 points to learn from (10,000), 2 seeds (50);"
    )
    assert "not the papers' results" in said
