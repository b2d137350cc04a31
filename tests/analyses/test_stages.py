"""Which model a run is, and pairs of stages."""

import json

import numpy as np
import pandas as pd
import pytest

from unweave.analyses import pair_summary, part_accuracy, stage_pairs, stage_runs, stage_scores
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def run(name, method="beta_tcvae", beta=4.0, latent_size=10, first="", **settings):
    """A run of a study, without scores."""
    return {
        "run": name,
        "data": "cars3d",
        "method": method,
        "strength_name": "beta" if not first else "latent_size",
        "strength": beta if not first else float(latent_size),
        "seed": 0,
        "correlation": 0.0,
        "latent_size": latent_size,
        "steps": 100,
        "settings": json.dumps(settings),
        "first": first,
        "representation": "mean",
        "protocol": "dlib",
        "seconds": 0.0,
    }


def score(of, metric, value, part=""):
    return {**of, "metric": metric, "value": value, "part": part}


FIRST, WIDE = run("first"), run("wide", latent_size=15)
BIG = run("big", latent_size=15, architecture={"name": "conv", "parameters": 1000})
M1 = run("m1", method="vae", beta=np.nan, latent_size=15, architecture={"name": "adain", "c_size": 10})
SECOND = run("second", method="ms_vae", latent_size=5, first="first")
M2 = run("m2", method="ms_vae", latent_size=5, first="first", condition="concatenation")
M3 = run("m3", method="ms_vae", latent_size=5, first="first", condition="c")
M5 = run("m5", method="ms_vae", latent_size=5, first="plain", condition="concatenation", first_part="z")
PLAIN = run("plain", method="vae", beta=np.nan, latent_size=5)
THIRD = run("third", method="ms_vae", latent_size=2, first="second")


@pytest.fixture
def table():
    runs = [FIRST, WIDE, BIG, M1, SECOND, M2, M3, M5, PLAIN, THIRD]
    rows = [score(one, "mig", 0.1 + 0.01 * number) for number, one in enumerate(runs)]
    rows += [score(SECOND, "mig", 0.1, "c"), score(SECOND, "mig", 0.02, "z")]
    rows += [score(FIRST, "fid_reconstruction", 100), score(SECOND, "fid_reconstruction", 40)]
    return as_table(rows)


def test_models_are_known_by_their_settings(table):
    models = stage_runs(table).set_index("run")["model"]
    assert models.to_dict() == {
        "first": "",
        "wide": "L",
        "big": "big",
        "m1": "M1",
        "second": "",
        "m2": "M2",
        "m3": "M3",
        "m5": "M5",
        "plain": "",
        "third": "",
    }


def test_a_chain_has_the_strength_and_the_size_of_its_first_stage(table):
    runs = stage_runs(table).set_index("run")
    assert runs.loc["third", ["root", "strength", "c_size", "z_size"]].tolist() == ["first", 4.0, 10, 2]
    assert runs.loc["second", ["root", "strength", "c_size", "z_size"]].tolist() == ["first", 4.0, 10, 5]
    assert runs.loc["first", "root"] == "first"
    assert pd.isna(runs.loc["first", "z_size"])
    assert runs["staged"].tolist() == [False, False, False, False, True, True, True, True, False, True]


def test_a_first_stage_that_the_study_lacks_is_no_error(table):
    runs = stage_runs(table[table["run"] != "first"]).set_index("run")
    assert runs.loc["second", "root"] == "second"


def test_scores_are_of_c_where_there_is_c(table):
    values = stage_scores(table, ["mig"]).set_index("run")["value"]
    assert values["second"] == 0.1  # not 0.14, which is that of all of the code
    assert values["first"] == 0.1
    assert stage_scores(table, ["mig"], part="z")["run"].tolist() == ["second"]
    with pytest.raises(NotInStudyError, match="no metric 'absent'"):
        stage_scores(table, ["absent"])


def test_pairs_are_of_a_run_and_its_own_first_stage(table):
    pairs = stage_pairs(table)
    fid = pairs[pairs["metric"] == "fid_reconstruction"]
    assert fid[["run", "first_value", "value"]].to_numpy().tolist() == [["second", 100.0, 40.0]]
    mig = pairs[pairs["metric"] == "mig"].set_index("run")
    assert mig.loc["third", "first_value"] == 0.1  # of c of the second stage
    assert mig.loc["second", "first_value"] == 0.1
    summary = pair_summary(pairs).set_index(["model", "metric"])
    assert summary.loc[("", "fid_reconstruction"), ["better", "equal", "n"]].tolist() == [1, 0, 1]
    assert summary.loc[("", "mig"), ["better", "equal", "n"]].tolist() == [1, 1, 2]
    with pytest.raises(NotInStudyError, match="no second stage"):
        stage_pairs(table[table["first"] == ""])


def test_accuracy_of_each_part(table):
    rows = [
        score(SECOND, "downstream_mlp.azimuth", 0.5 + 0.1 * k, part) for k, part in enumerate(("c", "z", ""))
    ]
    rows += [score(FIRST, "downstream_mlp.azimuth", 0.5)]
    accuracy = part_accuracy(pd.concat([table, as_table(rows)]))
    assert accuracy[["run", "part", "factor", "value"]].to_numpy().tolist() == [
        ["second", "c", "azimuth", 0.5],
        ["second", "z", "azimuth", 0.6],
        ["second", "", "azimuth", 0.7],
    ]
    with pytest.raises(NotInStudyError, match="no two parts"):
        part_accuracy(pd.concat([table, as_table(rows[:1])]))
