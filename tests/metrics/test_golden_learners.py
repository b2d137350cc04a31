"""The stored reference values of the metrics that learn."""

import golden
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

compared: dict[str, list[float]] = {}


def values_compared():
    return sum(map(len, compared.values()))


@pytest.fixture(scope="module", autouse=True)
def differences():
    """Say at the end how many values were compared, and how well they agree."""
    yield
    for metric, values in sorted(compared.items()):
        print(f"\n{metric}: {len(values)} values, largest difference {max(values):.2g}", end="")


def load(name, rows=None):
    return [golden.sample(name, part, rows) for part in ("train", "test")]


def agree(metric, found, expected, tolerance):
    found, expected = np.ravel(found).astype(float), np.ravel(expected).astype(float)
    difference = np.abs(found - expected)
    compared.setdefault(metric, []).extend(difference.tolist())
    allowed = tolerance["abs"] + tolerance.get("rel", 0) * np.abs(expected)
    assert (difference <= allowed).all(), f"{metric}: differs by {difference.max()}, allowed {allowed.max()}"


@pytest.mark.parametrize("name", golden.having("sap_classification"))
def test_sap_classification(name):
    reference = golden.CASES[name][0]["metrics"]["sap_classification"]
    score = sap.compute(*load(name), **sap.settings("dlib"))
    agree("sap svm", score.value, reference["value"], reference["tolerance"])
    agree("sap svm matrix", score.details["matrix"], reference["matrix"], reference["tolerance"])


@pytest.mark.parametrize("name", golden.having("sap_classification"))
def test_sap_classification_at_the_optimum(name):
    reference = golden.CASES[name][0]["metrics"]["sap_classification"]
    score = sap.compute(*load(name), **sap.settings("dlib"), solver="exact")
    agree("sap exact", score.value, reference["value"], reference["tolerance"])
    # Where codes are far from unit scale liblinear stops early: single accuracies then differ more.
    loose = {"abs": 0.02} if reference.get("version_sensitive") else reference["tolerance"]
    agree("sap exact matrix", score.details["matrix"], reference["matrix"], loose)


@pytest.mark.parametrize("name", golden.having("sap_classification_dual"))
def test_sap_classification_dual(name):
    reference = golden.CASES[name][0]["metrics"]["sap_classification_dual"]
    if reference["cpu_seconds"] > 5:
        pytest.skip("takes long: see the slow tests")
    agree(
        "sap dual",
        sap.compute(*load(name), **sap.settings("dlib"), solver="liblinear_dual").value,
        reference["value"],
        reference["tolerance"],
    )


@pytest.mark.parametrize("name", golden.having("sap_continuous"))
def test_sap_continuous(name):
    reference = golden.CASES[name][0]["metrics"]["sap_continuous"]
    score = sap.compute(*load(name), variant="regression")
    agree("sap regression", score.value, reference["value"], reference["tolerance"])
    agree("sap regression matrix", score.details["matrix"], reference["matrix"], reference["tolerance"])


@pytest.mark.parametrize(
    ("metric", "solver"),
    [
        ("explicitness", "lbfgs"),
        ("explicitness_active_dims", "lbfgs"),
        ("explicitness_liblinear_ovr", "liblinear_ovr"),
    ],
)
def test_explicitness(metric, solver):
    for name in golden.having(metric):
        reference = golden.CASES[name][0]["metrics"][metric]
        score = explicitness.compute(*load(name), solver=solver)
        values = reference["values"]
        agree(metric, score.value, reference["value"], reference["tolerance"])
        agree(metric, score.details["train"], values["explicitness_train"], reference["tolerance"])
        agree(metric, score.details["per_factor"], values["per_factor_test"], reference["tolerance"])
        if "per_factor_train" in values:
            agree(
                metric, score.details["per_factor_train"], values["per_factor_train"], reference["tolerance"]
            )


def compare_dci(name, metric, rows, learner, matrix=None):
    reference = golden.CASES[name][0]["metrics"][metric]
    score = dci.compute(*load(name, rows), **{**dci.settings("dlib"), "learner": learner})
    for part, value in reference["values"].items():
        agree(f"{metric} by {learner}", score.details[part], value, reference["tolerance"])
    if matrix is not None:
        agree(f"{metric} by {learner} matrix", score.details["matrix"], reference["matrix"], {"abs": matrix})


@pytest.mark.parametrize("name", golden.having("dci_gbt_n1000"))
def test_dci_gbt_first_1000_points(name):
    # Importances agree to 1e-12, but for a few splits that are equally good to the last bits of an exponential.
    compare_dci(name, "dci_gbt_n1000", 1000, "gbt", matrix=1e-3)


@pytest.mark.parametrize("name", golden.having("dci_l1svm"))
def test_dci_l1_svm(name):
    compare_dci(name, "dci_l1svm", None, "l1_svm")


@pytest.mark.parametrize("name", golden.having("dci_gbt"))
def test_dci_gbt_all_points(name):
    compare_dci(name, "dci_gbt", None, "gbt", matrix=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", golden.having("dci_gbt_n1000"))
def test_dci_gbt_of_scikit_learn(name):
    compare_dci(name, "dci_gbt_n1000", 1000, "gbt_sklearn", matrix=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", golden.having("sap_classification_dual"))
def test_sap_classification_dual_of_every_case(name):
    reference = golden.CASES[name][0]["metrics"]["sap_classification_dual"]
    agree(
        "sap dual",
        sap.compute(*load(name), **sap.settings("dlib"), solver="liblinear_dual").value,
        reference["value"],
        reference["tolerance"],
    )


def formulas(kind):
    return [formula for formula in golden.FORMULAS if formula["name"].startswith(kind)]


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
