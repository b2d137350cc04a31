"""The models that the multi-stage paper compares: their names, their styles, and which run of each is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import pandas as pd

from unweave.analyses.stages import MODELS, stage_runs
from unweave.data import Dataset
from unweave.errors import UnweaveError
from unweave.figures.grids import Block, paper_grid
from unweave.figures.papers.models import load_model
from unweave.figures.papers.paper import Picture
from unweave.figures.style import data_name, method_name, method_order, method_styles
from unweave.methods import Method, describe
from unweave.study import NotInStudyError, Results, select

ModelKey: TypeAlias = tuple[str, str]  # method, and the column ``model`` of ``stage_runs``
_ABLATIONS = {
    "M1": "one stage",
    "M2": "c and z joined",
    "M3": "c in place of y",
    "M5": "z first",
}
# Of the models that are not as their method usually is; the others have their method's colour.
_COLORS = {
    "L": "#56B4E9",
    "big": "#7F7F7F",
    "M1": "#CC79A7",
    "M2": "#D55E00",
    "M3": "#0072B2",
    "M5": "#000000",
}
_LINES = {"L": "--", "big": ":"}


def model_name(method: str, model: str) -> str:
    """A model's name as the paper writes it.

    Examples
    --------
    >>> model_name("beta_tcvae", "L"), model_name("beta_tcvae", "big"), model_name("ms_vae", "")
    ('β-TCVAE-L', 'Big-β-TCVAE', 'MS-VAE')
    >>> model_name("ms_vae", "M2")
    'M2: MS-VAE, c and z joined'
    """
    name = method_name(method)
    if model in _ABLATIONS:
        return f"{model}: {name}, {_ABLATIONS[model]}"
    return {"L": f"{name}-L", "big": f"Big-{name}"}.get(model, name)


def model_keys(rows: pd.DataFrame) -> list[ModelKey]:
    """The models of some runs in the order of figures: by method, and then as ``MODELS``."""
    pairs = {(str(method), str(model)) for method, model in zip(rows["method"], rows["model"], strict=True)}
    return sorted(pairs, key=lambda pair: (method_order(pair[0]), MODELS.index(pair[1])))


def model_styles(keys: Iterable[ModelKey]) -> dict[ModelKey, dict[str, Any]]:
    """Colour, marker and line of each model: the marker is the method's."""
    styles = {}
    for method, model in keys:
        style = method_styles([(method, "")])[method, ""]
        color = _COLORS.get(model, style["color"])
        styles[method, model] = {**style, "color": color, "linestyle": _LINES.get(model, "-")}
    return styles


def of_model(rows: pd.DataFrame, key: ModelKey) -> pd.DataFrame:
    """The rows of a model."""
    return rows[(rows["method"] == key[0]) & (rows["model"] == key[1])]


def strength_label(rows: pd.DataFrame) -> str:
    """What the first stages' strength is called: "β", or "strength" if there are several."""
    pairs = rows.dropna(subset="strength")[["root_method", "strength_name"]].drop_duplicates()
    labels = {_label_of(str(method), str(name)) for method, name in pairs.itertuples(index=False)}
    return labels.pop() if len(labels) == 1 else "strength of the first stage"


def _label_of(method: str, name: str) -> str:
    try:
        info = describe(method)
    except UnweaveError:  # a method of a package that is not here
        return name
    return info.strength_label if info.strength == name else name


def shown_runs(
    results: Results, staged: bool | None = None, models: Sequence[str] | None = None
) -> pd.DataFrame:
    """Per data set, method and model one run: that with the largest MIG of c, else the first.

    MIG says how well the first stage's codes suit the data; the second stage has no part in it. So the choice does not
    favour a good second stage.
    """
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    runs = stage_runs(results.table)
    if staged is not None:
        runs = runs[runs["staged"] == staged]
    if models is not None:
        runs = runs[runs["model"].isin(models)]
    if runs.empty:
        raise NotInStudyError(
            "the study has no such model" if not staged else "the study has no second stages"
        )
    runs = runs.assign(mig=runs["root"].map(_mig(results.table)))
    best = runs.sort_values("mig", ascending=False, kind="stable", na_position="last")
    return best.drop_duplicates(["data", "method", "model"]).sort_index()


def ablation_runs(results: Results, models: Sequence[str], with_first: bool) -> pd.DataFrame:
    """Per data set a run of each of some ``models`` ("" is the second stage as it is), all on one first stage.

    That first stage is with them if wanted, and for a model of one stage a plain first stage of the same seed. Of
    several candidates the first in the study is taken.
    """
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    runs = stage_runs(results.table)
    chosen: list[pd.DataFrame] = []
    for _, of_data in runs.groupby("data", sort=False):
        wanted = of_data[of_data["model"].isin(models) & (of_data["staged"] | (of_data["model"] != ""))]
        kinds = wanted.groupby("root", sort=False)["model"].nunique()
        complete = kinds[kinds == len(models)]
        if complete.empty:
            continue
        some = wanted[wanted["root"] == complete.index[0]].drop_duplicates("model")
        plain = of_data[~of_data["staged"] & (of_data["model"] == "")]
        own = plain[plain["run"].isin(some["root"])]
        first = own if len(own) else plain[plain["seed"].isin(some["seed"])].head(1)
        chosen += [first, some] if with_first else [some]
    if not chosen:
        names = " nor ".join(model or "second stage" for model in models)
        raise NotInStudyError(f"the study has no {names} on one first stage")
    result: pd.DataFrame = pd.concat(chosen)
    return result


def order_runs(results: Results) -> pd.DataFrame:
    """Per data set an M5, which learns z first, between a first stage and the second stage on it, of the same seed.

    The first stage of the M5 itself is another one, whose codes are z.
    """
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    chosen: list[pd.DataFrame] = []
    for _, of_data in stage_runs(results.table).groupby("data", sort=False):
        swapped = of_data[of_data["model"] == "M5"].head(1)
        plain = of_data[of_data["model"] == ""]
        second = plain[plain["staged"] & plain["seed"].isin(swapped["seed"])].head(1)
        chosen += [plain[plain["run"].isin(second["root"])], swapped, second] if len(swapped) else []
    if not chosen:
        raise NotInStudyError("the study has no M5")
    result: pd.DataFrame = pd.concat(chosen)
    return result


def extreme_runs(results: Results) -> pd.DataFrame:
    """Per data set and method the runs with the fewest and the most latents in c (then in z), of the smallest seed."""
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    runs = stage_runs(results.table)
    runs = runs[runs["staged"] & (runs["model"] == "")].dropna(subset=["c_size", "z_size"])
    runs = runs.sort_values(["c_size", "z_size", "seed"], kind="stable")
    runs = runs.drop_duplicates(["data", "method", "c_size", "z_size"])
    groups = runs.groupby(["data", "method"], sort=False)
    ends = [of_method.iloc[[0, -1]] for _, of_method in groups if len(of_method) > 1]
    if not ends:
        raise NotInStudyError("the study has no two sizes of the codes of a two-stage model")
    return pd.concat(ends)


def _mig(table: pd.DataFrame) -> dict[str, float]:
    """MIG of all of a first stage's codes, by run."""
    rows = table[(table["metric"] == "mig") & (table["part"] == "")]
    return {} if rows.empty else dict(select(rows, "mig").set_index("run")["value"])


def run_heading(run: Any) -> str:
    """Which run is shown: "Cars3D, MS-VAE (β = 4, |C| = 10, |Z| = 5, seed 0)"."""
    facts = []
    if pd.notna(run.strength):
        facts.append(f"{_label_of(run.root_method, run.strength_name)} = {run.strength:g}")
    facts += [f"|{name}| = {size}" for name, size in (("C", run.c_size), ("Z", run.z_size)) if pd.notna(size)]
    facts.append(f"seed {run.seed}")
    return f"{data_name(run.data)}, {model_name(run.method, run.model)} ({', '.join(facts)})"


def draw_runs(
    results: Results,
    runs: pd.DataFrame,
    blocks: Callable[[Method, Dataset, str], Sequence[Block]],
    across: int = 1,
) -> dict[str, Picture]:
    """A picture per data set: the blocks of each run, made from its method, its data and its heading.

    A run that cannot be shown, for want of weights, data files or a capability, is named below the picture.
    """
    assert results.runs is not None
    drawn: dict[str, list[Block]] = {}
    problems: dict[str, list[str]] = {}
    for run in runs.itertuples():
        heading = run_heading(run)
        try:
            method, data = load_model(results.runs / str(run.run), str(run.data))
            new = blocks(method, data, heading)
        except UnweaveError as error:
            problems.setdefault(str(run.data), []).append(f"{heading}: {error}")
            continue
        if new:
            drawn.setdefault(str(run.data), []).extend(new)
    if not drawn:
        reasons = "; ".join(problem for of_data in problems.values() for problem in of_data)
        raise NotInStudyError(
            f"no model can be shown: {reasons}" if reasons else "the study has no such model"
        )
    return {
        name: paper_grid(
            of_data,
            across,
            note=f"Not shown: {'; '.join(problems[name])}" if name in problems else "",
        )
        for name, of_data in drawn.items()
    }
