"""What does a later stage add to its first, and does it keep the first one's codes?

The questions of "Improving the reconstruction of disentangled representation learners via multi-stage modelling", of
which a study compares several models: the first stage alone, the same with as many latents as both stages have (L) or
as many weights (big), the second stage (M4), and its ablations M1, M2, M3, M5 (appendix L).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd

from unweave.study.results import NotInStudyError, details_of, select

Model = Literal["", "L", "big", "M1", "M2", "M3", "M5"]
MODELS: tuple[Model, ...] = ("", "L", "big", "M1", "M2", "M3", "M5")
CONDITIONING = tuple(f"conditioning.m{number}" for number in (1, 2, 3, 4))
PAIRED = ("fid_reconstruction", "reconstruction_error.l2", "mig")


def stage_runs(table: pd.DataFrame) -> pd.DataFrame:
    """The runs of a study with what they are among multi-stage models and their baselines.

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    one row per run: run, data, method, seed, steps, first, and

    ``model``
        "" for a plain first stage and for a later stage as the paper has it, else "L" (a first stage with as many
        latents as both stages together), "big" (with as many weights), or an ablation, "M1" to "M5".
    ``staged``
        whether the run has a first stage.
    ``root``
        the run that is the first of its chain of stages: itself if it has none.
    ``strength``, ``strength_name``
        of the root: beta of the first stage, by which all of its later stages are compared.
    ``c_size``, ``z_size``
        |C|, the latents of the root, and |Z|, those of the run, where it is staged; in M5 it is the other way round.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, stage_runs
    >>> table = simulate_results(data=["cars3d"], methods=["beta_tcvae"], seeds=1, strengths=2)
    >>> stage_runs(table)[["method", "model", "staged", "strength", "c_size"]]
           method model  staged  strength  c_size
    0  beta_tcvae         False       1.0      10
    1  beta_tcvae         False       2.0      10
    """
    runs = table.drop_duplicates("run").set_index("run", drop=False)
    settings = {run: json.loads(text) for run, text in runs["settings"].items()}
    roots = {run: _root(run, runs) for run in runs.index}
    root_rows = runs.loc[[roots[run] for run in runs.index]]
    result = pd.DataFrame(
        {
            **{name: runs[name].to_numpy() for name in ("run", "data", "method", "seed", "steps", "first")},
            "staged": (runs["first"] != "").to_numpy(),
            "root": list(roots.values()),
            "root_method": root_rows["method"].to_numpy(),
            "strength": root_rows["strength"].to_numpy(),
            "strength_name": root_rows["strength_name"].to_numpy(),
            "c_size": root_rows["latent_size"].array,
            "z_size": runs["latent_size"].where(runs["first"] != "").array,
        }
    )
    sizes = _sizes_of_both(result)
    firsts = set(result["first"])
    result["model"] = [
        _model(settings[run], bool(staged), run in firsts, (data, size) in sizes)
        for run, staged, data, size in zip(
            result["run"], result["staged"], result["data"], result["c_size"], strict=True
        )
    ]
    swapped = result["model"] == "M5"  # z is its root's, and c its own
    result.loc[swapped, ["c_size", "z_size"]] = result.loc[swapped, ["z_size", "c_size"]].to_numpy()
    return result


def stage_scores(table: pd.DataFrame, metrics: Sequence[str], part: str | None = None) -> pd.DataFrame:
    """The scores of each run, with the columns of :func:`stage_runs`.

    Parameters
    ----------
    table
        a results table.
    metrics
        those that the study lacks are left out.
    part
        of the codes. By default c, the codes of the first stage, where a metric has them, else all of the code: so a
        second stage is compared with others by the same codes.

    Returns
    -------
    the columns of ``stage_runs``, metric, value.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, stage_scores
    >>> table = simulate_results(data=["cars3d"], methods=["beta_tcvae"], seeds=2, strengths=1)
    >>> stage_scores(table, ["mig"])[["model", "strength", "metric", "value"]]
      model  strength metric  value
    0             1.0    mig   0.08
    1             1.0    mig   0.09
    """
    present = [name for name in metrics if (table["metric"] == name).any()]
    if not present:
        raise NotInStudyError(f"the study has no metric {' nor '.join(map(repr, metrics))}")
    chosen = []
    for metric in present:
        rows = table[table["metric"] == metric]
        wanted = ["c", ""] if part is None else [part]
        scores = [select(rows[rows["part"] == one], metric) for one in wanted if (rows["part"] == one).any()]
        if scores:
            chosen.append(pd.concat(scores).drop_duplicates("run")[["run", "metric", "value"]])
    if not chosen:
        raise NotInStudyError(f"the study has {present[0]!r} of no part {part!r}")
    scores_of_runs = pd.concat(chosen).dropna(subset="value")
    return stage_runs(table).merge(scores_of_runs, on="run", how="inner")


def stage_pairs(table: pd.DataFrame, metrics: Sequence[str] = PAIRED) -> pd.DataFrame:
    """Each later stage next to its own first stage.

    Returns
    -------
    the columns of :func:`stage_scores` for staged runs, and ``first_value``, the score of the run's first stage.

    Examples
    --------
    >>> import pandas as pd
    >>> from unweave.analyses import simulate_results, stage_pairs
    >>> table = simulate_results(data=["cars3d"], methods=["beta_tcvae"], seeds=1, strengths=1)
    >>> second = table.assign(run="second", method="ms_vae", first=table["run"], value=table["value"] / 2)
    >>> stage_pairs(pd.concat([table, second]), ["mig"])[["method", "first_value", "value"]]
       method  first_value  value
    0  ms_vae         0.18   0.09
    """
    scores = stage_scores(table, metrics)
    firsts = scores[["run", "metric", "value"]].rename(columns={"run": "first", "value": "first_value"})
    pairs = scores[scores["staged"]].merge(firsts, on=["first", "metric"], how="inner")
    if pairs.empty:
        raise NotInStudyError("the study has no second stage that was scored together with its first stage")
    return pairs


def pair_summary(pairs: pd.DataFrame, lower_is_better: Sequence[str] = PAIRED[:2]) -> pd.DataFrame:
    """How many later stages are better than their own first stages.

    Parameters
    ----------
    pairs
        of :func:`stage_pairs`.
    lower_is_better
        the metrics of which less is better.

    Returns
    -------
    one row per data set, method, model and metric: first_value and value (medians), difference (the median of the
    pairs' differences), better and equal (in how many pairs), n.

    Examples
    --------
    >>> import pandas as pd
    >>> from unweave.analyses import pair_summary, simulate_results, stage_pairs
    >>> table = simulate_results(data=["cars3d"], methods=["beta_tcvae"], seeds=1, strengths=1)
    >>> second = table.assign(run="second", method="ms_vae", first=table["run"], value=table["value"] / 2)
    >>> pair_summary(stage_pairs(pd.concat([table, second]), ["mig"]))[["first_value", "value", "better", "n"]]
       first_value  value  better  n
    0         0.18   0.09       0  1
    """
    sign = pairs["metric"].isin(lower_is_better).map({True: -1, False: 1})
    pairs = pairs.assign(
        difference=pairs["value"] - pairs["first_value"],
        better=(pairs["value"] - pairs["first_value"]) * sign > 0,
    )
    groups = pairs.groupby(["data", "method", "model", "metric"], sort=False)
    return groups.agg(
        first_value=("first_value", "median"),
        value=("value", "median"),
        difference=("difference", "median"),
        better=("better", "sum"),
        equal=("difference", lambda differences: int((differences == 0).sum())),
        n=("value", "size"),
    ).reset_index()


def part_accuracy(table: pd.DataFrame, metric: str = "downstream_mlp") -> pd.DataFrame:
    """How well each factor is predicted from c, from z, and from both.

    Parameters
    ----------
    table
        a results table with the metric's details, ``downstream_mlp.FACTOR``, of several parts of the codes.
    metric
        the learner.

    Returns
    -------
    the columns of :func:`stage_runs` for staged runs, part ("c", "z", "" for both), factor, value.

    Examples
    --------
    >>> from unweave.analyses import part_accuracy
    >>> from unweave.study.results import as_table
    >>> run = {"data": "dsprites", "strength_name": "", "seed": 0, "steps": 1, "settings": "{}", "protocol": "paper"}
    >>> run |= {"run": "b", "method": "ms_vae", "first": "a", "metric": "downstream_mlp.x", "representation": "mean"}
    >>> table = as_table([{**run, "part": "c", "value": 0.9}, {**run, "part": "z", "value": 0.2}])
    >>> part_accuracy(table)[["method", "part", "factor", "value"]]
       method part factor  value
    0  ms_vae    c      x    0.9
    1  ms_vae    z      x    0.2
    """
    details = details_of(table, metric)
    details = details[details["part"].isin(["c", "z", ""])]
    runs = stage_runs(table)
    staged = runs[runs["staged"]]
    details = details[details["run"].isin(staged["run"])]
    if details["part"].nunique() < 2:
        raise NotInStudyError(f"the study has {metric!r} of no two parts of the codes of a multi-stage model")
    details = details.rename(columns={"detail": "factor"})
    return staged.merge(details[["run", "part", "factor", "value"]], on="run", how="inner")


def _root(run: str, runs: pd.DataFrame) -> str:
    """The first of a run's chain of stages, as far as the study has them."""
    while (first := str(runs.at[run, "first"])) in runs.index:
        run = first
    return run


def _sizes_of_both(runs: pd.DataFrame) -> set[tuple[Any, Any]]:
    """Data sets and |C| + |Z| of their two-stage models."""
    staged = runs[runs["staged"]].dropna(subset=["c_size", "z_size"])
    return set(zip(staged["data"], staged["c_size"] + staged["z_size"], strict=True))


def _model(settings: dict[str, Any], staged: bool, is_first: bool, has_both_sizes: bool) -> Model:
    """Which model a run is, by what it was given."""
    if staged:
        if settings.get("first_part") == "z":
            return "M5"
        return {"c": "M3", "concatenation": "M2"}.get(settings.get("condition", "y"), "")  # type: ignore[return-value]
    architecture = settings.get("architecture")
    if isinstance(architecture, dict):
        return "M1" if architecture.get("name") == "adain" else "big"
    return "L" if has_both_sizes and not is_first else ""
