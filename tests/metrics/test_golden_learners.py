"""Values of other people's code on stored data. Set UNWEAVE_GOLDEN to the folder that holds them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from unweave.metrics.predictors.dci import (
    completeness,
    completeness_per_factor,
    dci,
    disentanglement,
    disentanglement_per_code,
)
from unweave.metrics.predictors.explicitness import explicitness
from unweave.metrics.predictors.sap import sap, sap_gaps
from unweave.metrics.sample import check_sample

FOLDER = os.environ.get("UNWEAVE_GOLDEN")
pytestmark = pytest.mark.skipif(not FOLDER, reason="UNWEAVE_GOLDEN is not set")

FILES = sorted(Path(FOLDER).glob("cases_*.json")) if FOLDER else []
GOLDEN = {path.stem: json.loads(path.read_text()) for path in FILES}
CASES = {case["id"]: (stem, case) for stem, golden in GOLDEN.items() for case in golden["cases"]}
compared: dict[str, list[float]] = {}


def values_compared():
    return sum(map(len, compared.values()))


def having(metric):
    """The cases with a number for a metric, by id."""
    return [
        name
        for name, (_, case) in CASES.items()
        if {"value", "values"} & set(case["metrics"].get(metric, ()))
    ]


@pytest.fixture(scope="module")
def arrays():
    """The stored arrays; says at the end how many values were compared."""
    yield {stem: np.load(Path(FOLDER) / f"{stem}.npz") for stem in GOLDEN}
    for metric, differences in sorted(compared.items()):
        print(f"\n{metric}: {len(differences)} values, largest difference {max(differences):.2g}", end="")


def load(arrays, name, rows=None):
    stem, case = CASES[name]
    return [
        check_sample(
            arrays[stem][case["arrays"][f"rep_{part}"]][:rows].astype(float),
            arrays[stem][case["arrays"][f"factors_{part}"]][:rows],
        )
        for part in ("train", "test")
    ]


def agree(metric, found, expected, tolerance):
    found, expected = np.ravel(found).astype(float), np.ravel(expected).astype(float)
    difference = np.abs(found - expected)
    compared.setdefault(metric, []).extend(difference.tolist())
    allowed = tolerance["abs"] + tolerance.get("rel", 0) * np.abs(expected)
    assert (difference <= allowed).all(), f"{metric}: differs by {difference.max()}, allowed {allowed.max()}"


@pytest.mark.parametrize("name", having("sap_classification"))
def test_sap_classification(arrays, name):
    golden = CASES[name][1]["metrics"]["sap_classification"]
    score = sap.compute(*load(arrays, name))
    agree("sap svm", score.value, golden["value"], golden["tolerance"])
    agree("sap svm matrix", score.details["matrix"], golden["matrix"], golden["tolerance"])


@pytest.mark.parametrize("name", having("sap_classification"))
def test_sap_classification_at_the_optimum(arrays, name):
    golden = CASES[name][1]["metrics"]["sap_classification"]
    score = sap.compute(*load(arrays, name), solver="exact")
    agree("sap exact", score.value, golden["value"], golden["tolerance"])
    # Where codes are far from unit scale liblinear stops early: single accuracies then differ more.
    loose = {"abs": 0.02} if golden.get("version_sensitive") else golden["tolerance"]
    agree("sap exact matrix", score.details["matrix"], golden["matrix"], loose)


@pytest.mark.parametrize("name", having("sap_classification_dual"))
def test_sap_classification_dual(arrays, name):
    golden = CASES[name][1]["metrics"]["sap_classification_dual"]
    if golden["cpu_seconds"] > 5:
        pytest.skip("takes long: see the slow tests")
    agree(
        "sap dual",
        sap.compute(*load(arrays, name), solver="liblinear_dual").value,
        golden["value"],
        golden["tolerance"],
    )


@pytest.mark.parametrize("name", having("sap_continuous"))
def test_sap_continuous(arrays, name):
    golden = CASES[name][1]["metrics"]["sap_continuous"]
    score = sap.compute(*load(arrays, name), variant="regression")
    agree("sap regression", score.value, golden["value"], golden["tolerance"])
    agree("sap regression matrix", score.details["matrix"], golden["matrix"], golden["tolerance"])


@pytest.mark.parametrize(
    ("metric", "solver"),
    [
        ("explicitness", "lbfgs"),
        ("explicitness_active_dims", "lbfgs"),
        ("explicitness_liblinear_ovr", "liblinear_ovr"),
    ],
)
def test_explicitness(arrays, metric, solver):
    for name in having(metric):
        golden = CASES[name][1]["metrics"][metric]
        score = explicitness.compute(*load(arrays, name), solver=solver)
        values = golden["values"]
        agree(metric, score.value, golden["value"], golden["tolerance"])
        agree(metric, score.details["train"], values["explicitness_train"], golden["tolerance"])
        agree(metric, score.details["per_factor"], values["per_factor_test"], golden["tolerance"])
        if "per_factor_train" in values:
            agree(metric, score.details["per_factor_train"], values["per_factor_train"], golden["tolerance"])


def compare_dci(arrays, name, metric, rows, learner, matrix=None):
    golden = CASES[name][1]["metrics"][metric]
    score = dci.compute(*load(arrays, name, rows), learner=learner)
    for part, value in golden["values"].items():
        agree(f"{metric} by {learner}", score.details[part], value, golden["tolerance"])
    if matrix is not None:
        agree(f"{metric} by {learner} matrix", score.details["matrix"], golden["matrix"], {"abs": matrix})


@pytest.mark.parametrize("name", having("dci_gbt_n1000"))
def test_dci_gbt_first_1000_points(arrays, name):
    # Importances agree to 1e-12, but for a few splits that are equally good to the last bits of an exponential.
    compare_dci(arrays, name, "dci_gbt_n1000", 1000, "gbt", matrix=1e-3)


@pytest.mark.parametrize("name", having("dci_l1svm"))
def test_dci_l1_svm(arrays, name):
    compare_dci(arrays, name, "dci_l1svm", None, "l1_svm")


@pytest.mark.parametrize("name", having("dci_gbt"))
def test_dci_gbt_all_points(arrays, name):
    compare_dci(arrays, name, "dci_gbt", None, "gbt", matrix=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", having("dci_gbt_n1000"))
def test_dci_gbt_of_scikit_learn(arrays, name):
    compare_dci(arrays, name, "dci_gbt_n1000", 1000, "gbt_sklearn", matrix=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", having("sap_classification_dual"))
def test_sap_classification_dual_of_every_case(arrays, name):
    golden = CASES[name][1]["metrics"]["sap_classification_dual"]
    agree(
        "sap dual",
        sap.compute(*load(arrays, name), solver="liblinear_dual").value,
        golden["value"],
        golden["tolerance"],
    )


def formulas(kind):
    return [f for golden in GOLDEN.values() for f in golden["formula_cases"] if f["name"].startswith(kind)]


@pytest.mark.parametrize("case", formulas("dci_scores"), ids=lambda case: case["name"])
def test_dci_formulas(case):
    matrix, expected = np.array(case["input"]["importance_[D,K]"]), case["expected"]
    agree("dci formulas", disentanglement(matrix), expected["disentanglement"], case["tolerance"])
    agree("dci formulas", completeness(matrix), expected["completeness"], case["tolerance"])
    agree("dci formulas", disentanglement_per_code(matrix), expected["per_code"], case["tolerance"])
    agree("dci formulas", completeness_per_factor(matrix), expected["per_factor"], case["tolerance"])


@pytest.mark.parametrize("case", formulas("sap_gap"), ids=lambda case: case["name"])
def test_sap_formula(case):
    matrix = np.array(case["input"]["score_matrix_[D,K]"])
    agree("sap formula", sap_gaps(matrix).mean(), case["expected"]["sap"], case["tolerance"])
