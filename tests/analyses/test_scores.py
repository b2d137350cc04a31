import numpy as np
import pandas as pd
import pytest

from unweave.analyses.scores import CONDITIONS, median_scores, seed_medians
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def rows(values, **changes):
    """One row per value, a run each."""
    base = {
        "data": "dsprites", "method": "beta_vae", "strength_name": "beta", "strength": 4.0, "correlation": 0.0,
        "latent_size": 10, "steps": 100, "settings": "{}", "metric": "mig", "representation": "mean",
        "protocol": "paper", "seconds": 1.0,
    }  # fmt: skip
    return [
        {**base, "run": f"{sorted(changes.items())}{seed}", "seed": seed, "value": value, **changes}
        for seed, value in enumerate(values)
    ]


def one(found, **wanted):
    kept = found
    for name, value in wanted.items():
        kept = kept[kept[name] == value]
    assert len(kept) == 1
    return kept.iloc[0]


def test_medians_are_over_strengths_and_seeds_of_unbalanced_groups():
    table = as_table(
        rows([0.1, 0.2], strength=1.0)
        + rows([0.3, 0.4, 0.9], strength=2.0)
        + rows([0.5, 0.7], method="factor_vae")
    )
    found = median_scores(table)
    beta, factor = one(found, method="beta_vae"), one(found, method="factor_vae")
    assert (beta["value"], beta["n"]) == (0.3, 5)
    assert (factor["value"], factor["n"]) == (pytest.approx(0.6), 2)
    assert 0.1 <= beta["low"] <= beta["value"] <= beta["high"] <= 0.9
    assert list(found.columns) == [
        *CONDITIONS,
        "method",
        "variant",
        "metric",
        "representation",
        "labels",
        "value",
        "low",
        "high",
        "n",
        "values",
    ]


@pytest.mark.parametrize(
    ("name", "other"),
    [("data", "cars3d"), ("correlation", 0.5), ("latent_size", 5), ("steps", 200), ("protocol", "dlib")],
)
def test_what_is_not_comparable_is_kept_apart(name, other):
    found = median_scores(as_table(rows([0.2, 0.4]) + rows([0.6, 0.8], **{name: other})))
    assert sorted(found["value"]) == pytest.approx([0.3, 0.7])
    assert one(found, **{name: other})["value"] == pytest.approx(0.7)


def test_label_fractions_are_kept_apart_and_stand_in_order():
    table = as_table(
        [
            row
            for place, part in enumerate(("1.0", "1000", "100"))
            for row in rows(
                [0.1 * place, 0.1 * place + 0.02],
                method="ss_idvae",
                settings=f'{{"labels": {{"labelled": {part}}}}}',
            )
        ]
        + rows([0.5])
    )
    found = median_scores(table)
    assert found["variant"].tolist() == ["", "labelled 100", "labelled 1000", "labelled 1.0"]
    assert found["value"].tolist() == pytest.approx([0.5, 0.21, 0.11, 0.01])
    assert found["n"].tolist() == [1, 2, 2, 2]
    assert seed_medians(table)["variant"].tolist() == found["variant"].tolist()


def test_medians_over_seeds_have_intervals_and_never_pool_what_the_study_varies():
    values = {
        (strength, latents): [0.1 * strength, 0.2 * latents, 0.3]
        for strength in (1.0, 4.0)
        for latents in (5, 10)
    }
    table = as_table(
        [row for (s, n), column in values.items() for row in rows(column, strength=s, latent_size=n)]
        + rows([0.7, 0.9], metric="mig.detail", strength=1.0, latent_size=5)
    )
    found = seed_medians(table)
    assert found.columns.tolist() == [
        "data", "method", "strength", "latent_size", "metric", "representation", "labels", "value", "low", "high",
        "n", "values",
    ]  # fmt: skip
    plain = found[found["metric"] == "mig"].set_index(["strength", "latent_size"])
    for key, column in values.items():
        assert plain.loc[key, "value"] == np.median(column)
        assert plain.loc[key, "values"] == tuple(sorted(column))
    assert plain["n"].tolist() == [3] * 4
    assert one(found, metric="mig.detail")["value"] == pytest.approx(0.8)


def test_the_mean_representation_comes_before_the_sampled_one():
    table = as_table(
        rows([0.5])
        + rows([0.1], representation="sampled")
        + rows([-20.0], metric="elbo", representation="sampled")
    )
    found = median_scores(table)
    assert one(found, metric="mig")["value"] == 0.5
    assert one(found, metric="elbo")["representation"] == "sampled"


def test_details_are_left_out_unless_asked_for_and_order_is_kept():
    table = as_table(
        rows([0.5], metric="sap", data="shapes3d")
        + rows([0.4], metric="dci", data="shapes3d")
        + rows([0.3], metric="dci.completeness", data="shapes3d")
        + rows([0.6], metric="sap", data="cars3d")
    )
    found = median_scores(table)
    assert found[["data", "metric"]].to_numpy().tolist() == [
        ["shapes3d", "sap"], ["shapes3d", "dci"], ["cars3d", "sap"],
    ]  # fmt: skip
    assert median_scores(table, ["dci.completeness"])["value"].tolist() == [0.3]
    with pytest.raises(NotInStudyError, match="'mig'"):
        median_scores(table, ["mig"])


def test_one_run_has_no_interval_and_missing_values_do_not_count():
    found = median_scores(as_table(rows([0.5, np.nan])))
    assert found["n"].tolist() == [1]
    assert found["value"].tolist() == [0.5]
    assert found[["low", "high"]].isna().all(axis=None)


def test_no_results_make_an_empty_table():
    found = median_scores(as_table([]))
    assert isinstance(found, pd.DataFrame)
    assert found.empty


@pytest.fixture
def labelled():
    """iVAE and SS-iVAE, whose codes score 0.9 with the true labels and 0.1 or 0.2 without them."""
    found = rows([0.3, 0.3]) + rows([-40.0], metric="unsupervised", representation="sampled")
    for method in ("ivae", "ss_ivae"):
        own = {"method": method, "strength": 1.0}
        for kind, metric in (("mean", "mig"), ("sampled", "unsupervised")):
            found += rows([0.9, 0.9], **own, metric=metric, representation=kind, labels="given")
            found += rows([0.1, 0.1], **own, metric=metric, representation=kind, labels="unknown")
    found += rows([0.2, 0.2], method="ss_ivae", metric="mig", labels="predicted")
    found += rows([0.4, 0.4], method="ivae", metric="udr")
    table = as_table(found)
    return table.assign(run=table["method"] + table["seed"].astype(str))


def test_scores_of_codes_that_saw_true_labels_are_kept_apart(labelled):
    blind = median_scores(labelled).set_index(["method", "metric"])
    assert blind["value"].to_dict() == {
        ("beta_vae", "mig"): 0.3, ("beta_vae", "unsupervised"): -40.0, ("ivae", "mig"): 0.1,
        ("ivae", "unsupervised"): 0.1, ("ivae", "udr"): 0.4, ("ss_ivae", "mig"): 0.2, ("ss_ivae", "unsupervised"): 0.1,
    }  # fmt: skip
    assert blind.loc[("ss_ivae", "mig"), ["representation", "labels"]].tolist() == ["mean", "predicted"]
    assert blind.loc[("ss_ivae", "unsupervised"), ["representation", "labels"]].tolist() == [
        "sampled",
        "unknown",
    ]
    given = median_scores(labelled, u_given=True)
    assert set(given["method"]) == {"ivae", "ss_ivae"}
    assert set(given["metric"]) == {"mig", "unsupervised"}
    assert set(given["value"]) == {0.9}
    assert (given["labels"] == "given").all()


def test_a_study_of_such_methods_alone_has_the_same_scores(labelled):
    found = median_scores(labelled[labelled["method"] == "ivae"])
    assert found[["metric", "value"]].to_numpy().tolist() == [
        ["mig", 0.1],
        ["unsupervised", 0.1],
        ["udr", 0.4],
    ]


def test_without_such_methods_nothing_is_given(labelled):
    assert median_scores(labelled[labelled["method"] == "beta_vae"], u_given=True).empty


def test_with_true_labels_only_there_is_nothing_to_compare(labelled):
    table = labelled[(labelled["representation"] == "mean") & labelled["labels"].isin(["", "given"])]
    assert set(median_scores(table, ["mig"])["method"]) == {"beta_vae"}
    table = table[table["labels"] == "given"]
    assert median_scores(table).empty
    assert len(median_scores(table, u_given=True)) == 2


def test_each_protocol_has_the_codes_that_it_has():
    table = as_table(rows([0.5]) + rows([0.1], protocol="dlib", representation="sampled"))
    assert one(median_scores(table), protocol="dlib")["representation"] == "sampled"
