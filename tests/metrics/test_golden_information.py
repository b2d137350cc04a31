"""Every stored reference value for the metrics of information, correlation and agreement.

The folder of reference values is named by the environment variable UNWEAVE_GOLDEN. All ``cases_*.json`` in it
are read, each with the arrays of the ``.npz`` of the same name.
"""

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from unweave.metrics.information.dcimig import dcimig
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.infomec import infomec
from unweave.metrics.information.jemmig import jemmig
from unweave.metrics.information.mig import mig
from unweave.metrics.information.mig_sup import mig_sup
from unweave.metrics.information.modularity import modularity, modularity_per_code
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix
from unweave.metrics.information.rmig import rmig
from unweave.metrics.interventions.irs import irs
from unweave.metrics.predictors.mcc import mcc
from unweave.metrics.sample import check_sample
from unweave.metrics.unlabelled.code_mutual_information import code_mutual_information
from unweave.metrics.unlabelled.gaussian_total_correlation import (
    gaussian_total_correlation,
    total_correlation_of,
)
from unweave.metrics.unlabelled.udr import relative_strength, udr
from unweave.metrics.unlabelled.wasserstein_correlation import wasserstein_correlation, wasserstein_of

FOLDER = os.environ.get("UNWEAVE_GOLDEN", "")
FILES = sorted(Path(FOLDER).glob("cases_*.json")) if FOLDER else []
COMPARED = Counter()

pytestmark = pytest.mark.skipif(not FILES, reason="UNWEAVE_GOLDEN names no folder with reference values")


def _load():
    for file in FILES:
        yield json.loads(file.read_text()), file.with_suffix(".npz")


CASES = [(case, arrays) for content, arrays in _load() for case in content["cases"]]
GROUPS = [(group, content["cases"], arrays) for content, arrays in _load() for group in content["udr_groups"]]
FORMULAS = [formula for content, _ in _load() for formula in content["formula_cases"]]


def values_compared():
    return COMPARED.total()


def named(key, items):
    return {"argvalues": items, "ids": [item[0][key] for item in items]}


def compare(name, found, golden, tolerance):
    """Compare numbers, vectors or matrices, and count them. nan is compared with nan."""
    expected = np.asarray(golden, dtype=np.float64)
    found = np.asarray(found, dtype=np.float64)
    assert found.shape == expected.shape, name
    same = np.isclose(found, expected, rtol=tolerance.get("rel", 0), atol=tolerance["abs"], equal_nan=True)
    assert same.all(), f"{name}: {found[~same][:5]} where {expected[~same][:5]} is expected"
    COMPARED[name.split("/")[0]] += expected.size


def sample_of(case, arrays, rows=None, dtype=np.float64):
    with np.load(arrays) as stored:
        codes, factors = stored[case["arrays"]["rep_train"]], stored[case["arrays"]["factors_train"]]
    return check_sample(codes.astype(dtype)[:rows], factors[:rows])


# What the reference leaves undefined (nan, or an error) has a value here, which the metric's own test checks.
VALUES = {
    "mig": mig.compute,
    "mig_float32_input": mig.compute,
    "mig_disent": rmig.compute,
    "mig_ubisoft": lambda sample: mig.compute(sample, denominator="code"),
    "modularity": modularity.compute,
    "modularity_ubisoft": lambda sample: modularity.compute(sample, rule="min_max"),
    "mig_sup": lambda sample: mig_sup.compute(sample, denominator="code"),
    "mig_sup_factor_entropy": lambda sample: mig_sup.compute(sample, denominator="factor"),
    "dcimig": dcimig.compute,
    "jemmig": jemmig.compute,
    "mcc_pearson": mcc.compute,
    "mcc_spearman": lambda sample: mcc.compute(sample, method="spearman"),
}


@pytest.mark.parametrize(("case", "arrays"), **named("id", CASES))
def test_values(case, arrays):
    double, single = sample_of(case, arrays), sample_of(case, arrays, dtype=np.float32)
    for name, metric in VALUES.items():
        golden = case["metrics"].get(name, {})
        found = float(metric(single if name == "mig_float32_input" else double))
        if "value" in golden and np.isfinite(float(golden["value"])):
            compare(name, found, golden["value"], golden["tolerance"])
        else:
            assert np.isfinite(found)


@pytest.mark.parametrize(("case", "arrays"), **named("id", CASES))
def test_information_and_unsupervised(case, arrays):
    sample, metrics = sample_of(case, arrays), case["metrics"]
    bins = discretise(sample.codes)
    for name, found in (
        ("mi_matrix", mutual_information_matrix(bins, sample.factors)),
        ("factor_entropy", entropy(sample.factors)),
        ("code_entropy", entropy(bins)),
    ):
        golden = metrics[name]
        compare(name, found, golden.get("matrix", golden.get("values")), golden["tolerance"])
    golden = metrics["unsupervised"]
    total_correlation = gaussian_total_correlation.compute(sample, jitter=0).value
    if golden["tolerance"]["kind"] == "exact":
        for name, found in (
            ("gaussian_total_correlation", total_correlation),
            ("gaussian_wasserstein_correlation", wasserstein_correlation.compute(sample).value),
            (
                "gaussian_wasserstein_correlation_norm",
                wasserstein_correlation.compute(sample, normalised=True).value,
            ),
            ("mutual_info_score", code_mutual_information.compute(sample).value),
        ):
            compare(name, found, golden["values"][name], golden["tolerance"])
    alone = metrics["gaussian_total_correlation"]
    if alone["tolerance"]["kind"] == "exact":
        compare("gaussian_total_correlation", total_correlation, alone["value"], alone["tolerance"])
    assert np.isfinite(gaussian_total_correlation.compute(sample).value)


@pytest.mark.parametrize(("case", "arrays"), **named("id", CASES))
def test_irs(case, arrays):
    sample = sample_of(case, arrays)
    for name in ("irs", "irs_quantile1"):
        golden = case["metrics"][name]
        values, kept = golden["values"], np.array(golden["values"]["dims_kept"])
        score = irs.compute(sample, diff_quantile=golden["params"]["diff_quantile"])
        np.testing.assert_array_equal(np.flatnonzero(score.details["active"]), kept)
        compare(name, score.value, golden["value"], golden["tolerance"])
        compare(name, score.details["matrix"][kept], golden["matrix"], golden["tolerance"])
        for vector in ("per_code", "parents", "max_deviations"):
            compare(name, score.details[vector][kept], values[vector], golden["tolerance"])


@pytest.mark.parametrize(("case", "arrays"), **named("id", CASES))
def test_infomec(case, arrays):
    sample = sample_of(case, arrays, rows=5000)
    for name, discrete in (("infomec", False), ("infomec_discrete", True)):
        if name not in case["metrics"]:
            continue
        golden = case["metrics"][name]
        score = infomec.compute(sample, discrete_latents=discrete)
        np.testing.assert_array_equal(score.details["active"], golden["values"]["active_latents"])
        for value in ("infom", "infoc", "infoe"):
            compare(name, score.details[value], golden["values"][value], golden["tolerance"])
        compare(name, score.details["matrix"].T, golden["matrix"], golden["tolerance"])


@pytest.mark.parametrize(("group", "cases", "arrays"), **named("name", GROUPS))
def test_udr(group, cases, arrays):
    cases = {case["id"]: case for case in cases}
    codes = [sample_of(cases[name], arrays).codes for name in group["cases"]]
    params = group["params"]
    kl = [np.array(params["kl_per_latent"])] * len(codes)
    score = udr.compute(
        codes,
        kl_list=kl,
        method=params["correlation"],
        kl_threshold=params["kl_filter_threshold"],
        lasso_alpha=params["lasso_alpha"],
    )
    compare("udr", score.details["pairwise"], group["values"]["pairwise"], group["tolerance"])
    compare("udr", score.details["per_model"], group["values"]["model_scores"], group["tolerance"])
    compare("udr", score.details["correlations"][0, 1], group["matrix"], group["tolerance"])


def modularity_formula(given):
    return {"modularity": modularity_per_code(np.array(given["mutual_information_[D,K]"])).mean()}


def udr_formula(given):
    return {"score": relative_strength(np.array(given["corr_matrix"]))}


def gaussian_formula(given):
    covariance = np.array(given["cov"])
    return {
        "total_correlation": total_correlation_of(covariance),
        "wasserstein_correlation": wasserstein_of(covariance),
    }


def discretiser_formula(given):
    return {"bins": discretise(np.array(given["x_[D,N]"]).T, given["num_bins"]).T + 1}


def information_formula(given):
    factors = np.array(given["factors_[K,N]"]).T
    matrix = mutual_information_matrix(np.array(given["codes_[D,N]"]).T, factors)
    return {"mi_[D,K]": matrix, "factor_entropy": entropy(factors)}


def irs_formula(given):
    sample = check_sample(given["codes_[N,D]"], given["factors_[N,K]"])
    score = irs.compute(sample, diff_quantile=given["diff_quantile"])
    return {"avg_score": score.value, **{k: score.details[k] for k in ("per_code", "parents", "matrix")}}


FORMULA_OF = {
    "modularity": modularity_formula,
    "udr_relative_strength": udr_formula,
    "gaussian": gaussian_formula,
    "histogram_discretize": discretiser_formula,
    "discrete_mi": information_formula,
    "irs": irs_formula,
}
OWN_FORMULAS = [formula for formula in FORMULAS if formula["name"].split("/")[0] in FORMULA_OF]


@pytest.mark.parametrize("formula", OWN_FORMULAS, ids=[formula["name"] for formula in OWN_FORMULAS])
def test_formula(formula):
    kind = formula["name"].split("/")[0]
    found = FORMULA_OF[kind](formula["input"])
    # The note of singular matrices: the reference's root is not accurate beyond 1e-6 there.
    slack = 1e-6 if "note" in formula else 0.0
    tolerance = {**formula["tolerance"], "abs": max(slack, formula["tolerance"]["abs"])}
    assert found.keys() == formula["expected"].keys()
    for name, expected in formula["expected"].items():
        compare(f"formula {kind}", found[name], expected, tolerance)
