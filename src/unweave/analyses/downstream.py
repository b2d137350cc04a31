"""Do disentangled codes need fewer labels? (Locatello et al., section 5.6)"""

from __future__ import annotations

import pandas as pd

from unweave.analyses.agreement import per_data, scores
from unweave.analyses.settings import available, independent_noise
from unweave.study.results import NotInStudyError, wide

LEARNERS = ("downstream_logistic", "downstream_gbt")
_PARTS = ("10", "100", "1000", "10000", "efficiency")


def with_downstream(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over runs of each metric (row) with each downstream score (column) (Figure 12).

    Downstream scores are the mean accuracy of logistic regression and of gradient boosted trees from 10, 100, 1000
    and 10,000 labels, and the statistical efficiency: accuracy from 100 over that from 10,000. Columns: data, row,
    column, value, low, high, n, with the bootstrap interval over seeds.
    """
    tasks = available(table, [f"{learner}.{part}" for learner in LEARNERS for part in _PARTS])
    runs, metrics = _joined(table, tasks)
    return per_data(runs, metrics, tasks)


def efficiency(table: pd.DataFrame, learner: str) -> tuple[pd.DataFrame, list[str]]:
    """One row per run with its metrics and ``efficiency`` by ``learner``, and which metrics (Figures 13 and 14)."""
    name = f"{learner}.efficiency"
    runs, metrics = _joined(table, available(table, [name]))
    runs = runs.rename(columns={name: "efficiency"}).dropna(subset="efficiency")
    if runs.empty:
        raise NotInStudyError(f"{learner} was not learnt from both 100 and 10,000 labels")
    return runs, metrics


def _joined(table: pd.DataFrame, tasks: list[str]) -> tuple[pd.DataFrame, list[str]]:
    runs, metrics = scores(table)
    found = wide(independent_noise(table, tasks), tasks).set_index("run")[tasks]
    return runs.set_index("run").join(found).reset_index(), metrics
