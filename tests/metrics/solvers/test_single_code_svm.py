import numpy as np
import pytest
from sklearn.svm import LinearSVC

from unweave.metrics.solvers.single_code_svm import exact_svm_lines, liblinear_svm_lines


def svm(x, y, **settings):
    return LinearSVC(C=0.01, class_weight="balanced", dual=False, **settings).fit(x[:, None], y)


def converged_svm(x, y):
    return svm(x, y, tol=1e-10, max_iter=100_000)


def draw_line(classes, shift, scale):
    """Sorted points and their classes, of unequal size."""
    random = np.random.default_rng(classes)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, 200) ** 2 // classes])
    return np.sort(scale * (labels + random.normal(size=len(labels))) + shift), labels


@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (3, 2), (-20, 5), (0, 0.05), (0, 0)])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_exact_lines_are_those_of_liblinear_when_it_converges(classes, shift, scale):
    x, labels = draw_line(classes, shift, scale)
    lines = exact_svm_lines(x, labels, classes, 0.01)
    machine = converged_svm(x, labels)
    np.testing.assert_allclose(lines[:, 0], machine.coef_[:, 0], atol=1e-6, rtol=1e-5)
    np.testing.assert_allclose(lines[:, 1], machine.intercept_, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("shift", "scale"), [(0, 1), (3, 2), (-20, 5), (0, 0.05), (0, 0), (0, 100), (500, 30)]
)
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_liblinear_lines_stop_where_liblinear_does(classes, shift, scale):
    x, labels = draw_line(classes, shift, scale)
    lines, machine = liblinear_svm_lines(x, labels, classes, 0.01), svm(x, labels)
    np.testing.assert_allclose(lines[:, 0], machine.coef_[:, 0], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(lines[:, 1], machine.intercept_, rtol=1e-7, atol=1e-12)
