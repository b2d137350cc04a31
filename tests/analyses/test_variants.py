"""Which settings make a variant: those that a study varies, and no others."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.variants import method_variants, variant_order, with_variant


def variants(table: pd.DataFrame) -> pd.Series:
    """The variant of each run."""
    return with_variant(table).drop_duplicates("run").set_index("run")["variant"]


def runs(*points: dict[str, Any], **settings: list[Any]) -> pd.DataFrame:
    """One row per point and combination of settings; what is no column is a setting."""
    grid = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    rows = []
    for number, (point, more) in enumerate(itertools.product(points or ({},), grid)):
        base = {
            "data": "d",
            "method": "m",
            "strength": 1.0,
            "seed": 0,
            "correlation": 0.0,
            "latent_size": 10,
            "steps": 1,
        }
        given = {**point, **more}
        own = {name: value for name, value in given.items() if name not in base}
        columns = {name: value for name, value in given.items() if name in base}
        rows.append({"run": str(number), **base, **columns, "settings": json.dumps(own, sort_keys=True)})
    return pd.DataFrame(rows)


def test_only_what_varies_is_named_by_its_own_name() -> None:
    table = runs(
        labels=[{"factors": ["shape"], "labelled": 100}, {"factors": ["shape"], "labelled": 1.0}],
        label_variance=[0.5, 2.0],
        likelihood=["bernoulli"],
    )
    assert variants(table).tolist() == [
        "label_variance 0.5, labelled 100", "label_variance 2.0, labelled 100",
        "label_variance 0.5, labelled 1.0", "label_variance 2.0, labelled 1.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "points",
    [
        [{"strength": 1.0, "lambda_d": 10}, {"strength": 2.0, "lambda_d": 20}],
        [{"data": "a", "likelihood": "bernoulli"}, {"data": "b", "likelihood": "gaussian"}],
        [{"method": "a", "gamma": 1}, {"method": "b", "lambda_d": 1}],
        [{"steps": 10, "warm_up": 1}, {"steps": 100, "warm_up": 10}],
        [{"latent_size": 10, "width": 1}, {"latent_size": 20, "width": 2}],
        [{"correlation": 0.0, "width": 1}, {"correlation": 0.9, "width": 2}],
        [{"seed": 0, "labels": {"seed": 0}}, {"seed": 1, "labels": {"seed": 1}}],
    ],
)
def test_what_goes_with_a_column_is_no_variant(points: list[dict[str, Any]]) -> None:
    table = runs(*points, learning_rate=[1e-4])
    assert variants(table).tolist() == ["", ""]
    found = variants(runs(*points, learning_rate=[1e-4, 1e-3]))
    assert found.tolist() == ["learning_rate 0.0001", "learning_rate 0.001"] * 2


def test_methods_vary_by_themselves_and_a_strength_may_be_missing() -> None:
    varied = runs({"method": "a", "strength": np.nan}, width=[1, 2])
    table = pd.concat([varied, runs({"method": "b"}, width=[3]).assign(run="b")])
    assert variants(table).to_dict() == {"0": "width 1", "1": "width 2", "b": ""}
    assert method_variants(with_variant(table)) == [("a", "width 1"), ("a", "width 2"), ("b", "")]


def test_a_method_has_the_same_variants_on_every_data_set() -> None:
    one, other = runs({"data": "a"}, width=[1, 2]), runs({"data": "b"}, width=[2]).assign(run="b")
    assert variants(pd.concat([one, other])).tolist() == ["width 1", "width 2", "width 2"]


def test_runs_with_different_settings_have_different_names() -> None:
    labels = [None, {}, {"labelled": 10}, {"labelled": 10, "noise": 0.1}, ["shape", "scale"], "shape"]
    found = variants(runs(labels=labels))
    assert found.tolist() == [
        "labels none", "labels {}", "labelled 10", "labelled 10, noise 0.1", "labels [shape, scale]", "labels shape",
    ]  # fmt: skip
    table = pd.concat([runs(width=[1, 2]), runs().assign(run="2")])
    assert variants(table).tolist() == ["width 1", "width 2", "default"]
    twice = [[{"term": "a", "weight": 1}, {"term": "b", "weight": w}] for w in (1, 2)] + [
        [{"term": "a", "weight": 3}, {"term": "b", "weight": 1}]
    ]
    assert variants(runs(extra_terms=twice)).tolist() == [
        "extra_terms.0.weight 1, extra_terms.1.weight 1",
        "extra_terms.0.weight 1, extra_terms.1.weight 2",
        "extra_terms.0.weight 3, extra_terms.1.weight 1",
    ]


def test_all_rows_of_a_run_have_its_variant() -> None:
    table = runs(labels=[{"labelled": 100}, {"labelled": 1000}])
    table = pd.concat([table, table], ignore_index=True)  # several scores of each run
    found = with_variant(table)
    assert found["variant"].tolist() == ["labelled 100", "labelled 1000"] * 2
    assert found["method"].unique().tolist() == ["m"]
    pd.testing.assert_frame_equal(with_variant(found), found)
    assert "variant" not in table


def test_variants_are_ordered_by_their_numbers_and_counts_come_before_shares() -> None:
    texts = [
        "labelled 1.0",
        "labelled 0.1",
        "labelled 1000",
        "labelled 100",
        "width 5",
        "rate 1e-05, labelled 2",
    ]
    assert sorted(texts, key=variant_order) == [
        "labelled 100", "labelled 1000", "labelled 0.1", "labelled 1.0", "rate 1e-05, labelled 2", "width 5",
    ]  # fmt: skip


def test_no_runs_have_no_variants() -> None:
    assert variants(runs(width=[1])[:0]).empty
