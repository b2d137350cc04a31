"""Every stored reference value for the metrics of information, correlation and agreement."""

from collections import Counter

import golden
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

COMPARED = Counter()


def values_compared():
    return COMPARED.total()


def compare(name, found, reference, tolerance):
    """Compare numbers, vectors or matrices, and count them. nan is compared with nan."""
    expected = np.asarray(reference, dtype=np.float64)
    found = np.asarray(found, dtype=np.float64)
    assert found.shape == expected.shape, name
    same = np.isclose(found, expected, rtol=tolerance.get("rel", 0), atol=tolerance["abs"], equal_nan=True)
    assert same.all(), f"{name}: {found[~same][:5]} where {expected[~same][:5]} is expected"
    COMPARED[name.split("/")[0]] += expected.size


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


@pytest.mark.parametrize("name", golden.CASES)
def test_values(name):
    case, _ = golden.CASES[name]
    double, single = golden.sample(name), golden.sample(name, dtype=np.float32)
    for metric, compute in VALUES.items():
        expected = case["metrics"].get(metric, {})
        found = float(compute(single if metric == "mig_float32_input" else double))
        if "value" in expected and np.isfinite(float(expected["value"])):
            compare(metric, found, expected["value"], expected["tolerance"])
        else:
            assert np.isfinite(found)


@pytest.mark.parametrize("name", golden.CASES)
def test_information_and_unsupervised(name):
    sample, metrics = golden.sample(name), golden.CASES[name][0]["metrics"]
    bins = discretise(sample.codes)
    for metric, found in (
        ("mi_matrix", mutual_information_matrix(bins, sample.factors)),
        ("factor_entropy", entropy(sample.factors)),
        ("code_entropy", entropy(bins)),
    ):
        expected = metrics[metric]
        compare(metric, found, expected.get("matrix", expected.get("values")), expected["tolerance"])
    expected = metrics["unsupervised"]
    total_correlation = gaussian_total_correlation.compute(sample, jitter=0).value
    if expected["tolerance"]["kind"] == "exact":
        for metric, found in (
            ("gaussian_total_correlation", total_correlation),
            ("gaussian_wasserstein_correlation", wasserstein_correlation.compute(sample).value),
            (
                "gaussian_wasserstein_correlation_norm",
                wasserstein_correlation.compute(sample, normalised=True).value,
            ),
            ("mutual_info_score", code_mutual_information.compute(sample).value),
        ):
            compare(metric, found, expected["values"][metric], expected["tolerance"])
    alone = metrics["gaussian_total_correlation"]
    if alone["tolerance"]["kind"] == "exact":
        compare("gaussian_total_correlation", total_correlation, alone["value"], alone["tolerance"])
    assert np.isfinite(gaussian_total_correlation.compute(sample).value)


@pytest.mark.parametrize("name", golden.CASES)
def test_irs(name):
    sample, metrics = golden.sample(name), golden.CASES[name][0]["metrics"]
    for metric in ("irs", "irs_quantile1"):
        expected = metrics[metric]
        values, kept = expected["values"], np.array(expected["values"]["dims_kept"])
        score = irs.compute(sample, diff_quantile=expected["params"]["diff_quantile"])
        np.testing.assert_array_equal(np.flatnonzero(score.details["active"]), kept)
        compare(metric, score.value, expected["value"], expected["tolerance"])
        compare(metric, score.details["matrix"][kept], expected["matrix"], expected["tolerance"])
        for vector in ("per_code", "parents", "max_deviations"):
            compare(metric, score.details[vector][kept], values[vector], expected["tolerance"])


@pytest.mark.parametrize("name", golden.CASES)
def test_infomec(name):
    sample, metrics = golden.sample(name, rows=5000), golden.CASES[name][0]["metrics"]
    for metric, discrete in (("infomec", False), ("infomec_discrete", True)):
        if metric not in metrics:
            continue
        expected = metrics[metric]
        score = infomec.compute(sample, discrete_latents=discrete)
        np.testing.assert_array_equal(score.details["active"], expected["values"]["active_latents"])
        for value in ("infom", "infoc", "infoe"):
            compare(metric, score.details[value], expected["values"][value], expected["tolerance"])
        compare(metric, score.details["matrix"].T, expected["matrix"], expected["tolerance"])


@pytest.mark.parametrize("name", golden.UDR_GROUPS)
def test_udr(name):
    group = golden.UDR_GROUPS[name]
    codes = [golden.sample(case).codes for case in group["cases"]]
    params = group["params"]
    score = udr.compute(
        codes,
        kl_list=[np.array(params["kl_per_latent"])] * len(codes),
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
OWN_FORMULAS = [formula for formula in golden.FORMULAS if formula["name"].split("/")[0] in FORMULA_OF]


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
