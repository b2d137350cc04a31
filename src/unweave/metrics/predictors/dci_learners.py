"""The learners behind `dci`: how important each code is for each factor, and how well it is predicted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from unweave.arrays import BoolArray, FloatArray, IntArray
from unweave.metrics.sample import Sample
from unweave.optional import require

FOREST_DEPTHS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Fit:
    """Importances (D, K) and, for each factor, how well it is predicted on both samples (K,)."""

    importances: FloatArray
    train_scores: FloatArray
    test_scores: FloatArray
    converged: BoolArray | None = None


class Model(Protocol):
    """What is used of a scikit-learn estimator."""

    def fit(self, codes: Any, target: Any, /) -> Any: ...
    def predict(self, codes: Any, /) -> Any: ...


def gbt(train: Sample, test: Sample, seed: int) -> Fit:
    """Boosted trees by `unweave.metrics.solvers.boosted_trees`."""
    from unweave.metrics.solvers.boosted_trees import fit_boosted_trees

    models = fit_boosted_trees(train.codes, train.factors, seed)
    importances = np.stack([model.importances for model in models], axis=1)
    on_train = [np.mean(model.fitted == train.factors[:, j]) for j, model in enumerate(models)]
    on_test = [np.mean(model.predict(test.codes) == test.factors[:, j]) for j, model in enumerate(models)]
    return Fit(importances, np.array(on_train), np.array(on_test))


def gbt_sklearn(train: Sample, test: Sample, seed: int) -> Fit:
    """Boosted trees by scikit-learn. All factors draw from one stream, as they do in disentanglement_lib."""
    from sklearn.ensemble import GradientBoostingClassifier

    from unweave.metrics.solvers.boosted_trees import DEPTH, LEARNING_RATE, ROUNDS

    random = np.random.RandomState(seed)  # the generator that scikit-learn takes

    def create() -> Model:
        # The criterion is left at its default: every release searches the same splits, but 1.9 refuses its name.
        model: Model = GradientBoostingClassifier(
            loss="log_loss",
            learning_rate=LEARNING_RATE,
            n_estimators=ROUNDS,
            subsample=1.0,
            min_samples_split=2,
            min_samples_leaf=1,
            min_weight_fraction_leaf=0.0,
            max_depth=DEPTH,
            min_impurity_decrease=0.0,
            init=None,
            random_state=random,
            max_features=None,
            verbose=0,
            max_leaf_nodes=None,
            warm_start=False,
            n_iter_no_change=None,
            ccp_alpha=0.0,
        )
        return model

    return _classify(train, test, create, lambda model: model.feature_importances_)


def lightgbm(train: Sample, test: Sample, seed: int) -> Fit:
    """Boosted trees by LightGBM, on codes in 255 bins."""
    classifier = require("lightgbm", "lightgbm", "dci with learner='lightgbm'").LGBMClassifier
    from unweave.metrics.solvers.boosted_trees import DEPTH, LEARNING_RATE, ROUNDS

    def create() -> Model:
        model: Model = classifier(
            boosting_type="gbdt",
            num_leaves=2**DEPTH,
            max_depth=DEPTH,
            learning_rate=LEARNING_RATE,
            n_estimators=ROUNDS,
            max_bin=255,
            subsample_for_bin=200_000,
            class_weight=None,
            min_split_gain=0.0,
            min_child_weight=1e-3,
            min_child_samples=1,
            subsample=1.0,
            subsample_freq=0,
            colsample_bytree=1.0,
            reg_alpha=0.0,
            reg_lambda=0.0,
            random_state=seed,
            importance_type="gain",
            n_jobs=1,
            deterministic=True,
            force_col_wise=True,
            verbosity=-1,
        )
        return model

    def shares(model: Any) -> FloatArray:
        gains = np.asarray(model.feature_importances_, dtype=np.float64)
        return gains / gains.sum() if gains.sum() > 0 else gains

    return _classify(train, test, create, shares)


def l1_svm(train: Sample, test: Sample, seed: int) -> Fit:
    """Linear support vector machines with an l1 penalty, one class against the rest; at most 1000 rounds.

    They are those of scikit-learn's LinearSVC(penalty="l1", dual=False, C=1, tol=1e-4, random_state=seed).
    """
    machines: list[_L1Machines] = []

    def create() -> Model:
        machines.append(_L1Machines(seed))
        return machines[-1]

    fit = _classify(train, test, create, lambda model: np.abs(model.weights[:, :-1]).mean(axis=0))
    several = [len(np.unique(column)) > 1 for column in train.factors.T]
    converged = np.ones(len(several), dtype=bool)
    converged[several] = [machine.iterations < _L1Machines.max_iter for machine in machines]
    return Fit(fit.importances, fit.train_scores, fit.test_scores, converged)


class _L1Machines:
    """The machines of all classes of one factor."""

    max_iter = 1000

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, codes: FloatArray, target: IntArray) -> None:
        from unweave.metrics.solvers.l1_svm import fit_l1_svm

        self.values, labels = np.unique(target, return_inverse=True)
        self.weights, self.iterations = fit_l1_svm(
            codes, labels, len(self.values), self.seed, max_iter=self.max_iter
        )

    def predict(self, codes: FloatArray) -> IntArray:
        scores = codes @ self.weights[:, :-1].T + self.weights[:, -1]
        best = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)
        predicted: IntArray = self.values[best]
        return predicted


def lasso(train: Sample, test: Sample, seed: int) -> Fit:
    """Linear regression with the l1 penalty 0.02 on standardised codes and factors."""
    from sklearn.linear_model import Lasso

    model = Lasso(
        alpha=0.02,
        fit_intercept=True,
        precompute=False,
        copy_X=True,
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        positive=False,
        random_state=seed,
        selection="cyclic",
    )
    return _regress(train, test, lambda codes, target: model.fit(codes, target), lambda m: np.abs(m.coef_))


def forest(train: Sample, test: Sample, seed: int) -> Fit:
    """Random forests of ten trees; the depth, out of 2, 4, 8 and 16, is the best on the last fifth of ``train``."""

    from sklearn.ensemble import RandomForestRegressor

    def create(depth: int) -> Any:
        return RandomForestRegressor(
            n_estimators=10,
            criterion="squared_error",
            max_depth=depth,
            min_samples_split=2,
            min_samples_leaf=1,
            min_weight_fraction_leaf=0.0,
            max_features=1.0,
            max_leaf_nodes=None,
            min_impurity_decrease=0.0,
            bootstrap=True,
            oob_score=False,
            n_jobs=None,
            random_state=seed,
            verbose=0,
            warm_start=False,
            ccp_alpha=0.0,
            max_samples=None,
        )

    def fit(codes: FloatArray, target: FloatArray) -> Any:
        split = max(1, len(codes) * 4 // 5)
        if split == len(codes):
            return create(FOREST_DEPTHS[0]).fit(codes, target)
        errors = [
            np.mean(
                (create(depth).fit(codes[:split], target[:split]).predict(codes[split:]) - target[split:])
                ** 2
            )
            for depth in FOREST_DEPTHS
        ]
        return create(FOREST_DEPTHS[int(np.argmin(errors))]).fit(codes, target)

    return _regress(train, test, fit, lambda model: model.feature_importances_)


Learner = Literal["gbt", "gbt_sklearn", "lightgbm", "l1_svm", "lasso", "forest"]
LEARNERS: dict[Learner, Callable[[Sample, Sample, int], Fit]] = {
    "gbt": gbt,
    "gbt_sklearn": gbt_sklearn,
    "lightgbm": lightgbm,
    "l1_svm": l1_svm,
    "lasso": lasso,
    "forest": forest,
}


def _classify(
    train: Sample, test: Sample, create: Callable[[], Model], importance: Callable[[Any], FloatArray]
) -> Fit:
    """One classifier per factor, scored by accuracy; a factor with one value needs none."""
    from sklearn.exceptions import ConvergenceWarning

    shape = train.codes.shape[1], train.factors.shape[1]
    importances, scores = np.zeros(shape), np.zeros((2, shape[1]))
    for j in range(shape[1]):
        target = train.factors[:, j]
        if (target == target[0]).all():
            scores[:, j] = [np.mean(s.factors[:, j] == target[0]) for s in (train, test)]
            continue
        model = create()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(train.codes, target)
        importances[:, j] = importance(model)
        scores[:, j] = [np.mean(model.predict(s.codes) == s.factors[:, j]) for s in (train, test)]
    return Fit(importances, scores[0], scores[1])


def _regress(
    train: Sample,
    test: Sample,
    fit: Callable[[FloatArray, FloatArray], Any],
    importance: Callable[[Any], FloatArray],
) -> Fit:
    """One regression per factor on standardised codes and factors, scored by 1 - RMSE / deviation from the mean.

    Mean and deviation are those of ``train``. A factor with one value has no deviation: 1 where it is met, else 0.
    """
    mean, deviation = train.codes.mean(axis=0), train.codes.std(axis=0)
    codes = [(s.codes - mean) / np.where(deviation > 1e-8, deviation, 1.0) for s in (train, test)]
    shape = train.codes.shape[1], train.factors.shape[1]
    importances, scores = np.zeros(shape), np.zeros((2, shape[1]))
    for j in range(shape[1]):
        target = train.factors[:, j]
        centre, spread = target.mean(), target.std()
        targets = [s.factors[:, j] - centre for s in (train, test)]
        if spread == 0:
            scores[:, j] = [np.mean(t == 0) for t in targets]
            continue
        model = fit(codes[0], targets[0] / spread)
        importances[:, j] = importance(model)
        for side in range(2):
            error = np.sqrt(np.mean((model.predict(codes[side]) * spread - targets[side]) ** 2))
            baseline = np.sqrt(np.mean(targets[side] ** 2))
            scores[side, j] = 1 - error / baseline if baseline > 0 else float(error == 0)
    return Fit(importances, scores[0], scores[1])
