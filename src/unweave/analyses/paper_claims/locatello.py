"""The claims of Locatello et al., "Challenging Common Assumptions in the Unsupervised Learning of Disentangled
Representations", section 5.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from unweave.analyses.downstream import LEARNERS, statistical_efficiency
from unweave.analyses.explained_variance import variance_shares
from unweave.analyses.hyperparameters import scores_by_strength
from unweave.analyses.paper_claims.claim import (
    LEVEL,
    Claim,
    Evidence,
    Judgement,
    Verdict,
    absence,
    correlation_text,
    data_of,
    judge,
    judge_together,
    label,
    metric_label,
    number,
    p_text,
)
from unweave.analyses.runs import disentanglement_scores, independent_noise, main_runs
from unweave.analyses.selection import UNSUPERVISED_SCORES
from unweave.analyses.selection_test import Selection, selection_tests
from unweave.analyses.statistics.intervals import FEWEST, jackknife_interval
from unweave.analyses.statistics.permutation import correlation_tests, trend_test
from unweave.analyses.total_correlation import METRIC, mean_and_sampled
from unweave.study.results import NotInStudyError, select

# What section 5.2 says of each method as its strength grows: 1 rises, -1 falls; and in which words.
_SAMPLED = {
    "beta_vae": (-1, "falls", "can be clearly seen"),
    "beta_tcvae": (-1, "falls", "can be clearly seen"),
    "dip_vae_i": (-1, "falls", "seems to, less pronounced"),
    "dip_vae_ii": (-1, "falls", "seems to, less pronounced"),
    "factor_vae": (0, "does not fall", "does not seem to decrease"),
}
_MEAN = {
    "beta_vae": "substantially increased",
    "beta_tcvae": "substantially increased",
    "factor_vae": "increased, less extreme",
}
_AGREEING = ("beta_vae", "factor_vae", "mig")
_FEWEST_OF_A_MEDIAN = 3  # of fewer runs a median says little, and a range of medians nothing


def locatello_claims(table: pd.DataFrame) -> list[Claim]:
    """Claims (a) to (h), on each data set of a study.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.paper_claims.locatello import locatello_claims
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> locatello_claims(table)[0].verdict
    'holds'
    """
    claims: list[Claim] = []
    parts = [part for _, part in table.groupby("data", sort=False)] or [table]
    for question in (_sampled, _mean, _mean_above_sampled, _ranges, _shares, _agreement):
        for part in parts:
            claims += question(part)
    claims += _selection(table)
    for question in (_unsupervised, _efficiency):
        for part in parts:
            claims += question(part)
    return claims


# --- total correlation ---------------------------------------------------------------------------


def _sampled(table: pd.DataFrame) -> list[Claim]:
    texts = {
        method: f"(a) The total correlation of sampled codes {words} with the strength: {label(method)} ({quoted})"
        for method, (_, words, quoted) in _SAMPLED.items()
    }
    signs = {method: direction or 1 for method, (direction, *_) in _SAMPLED.items()}
    claims = judge_together(_trends(table, "sampled", "Figure 2", texts, signs))
    return [
        replace(claim, reason=f"{claim.reason}: no trend shown, which is not evidence of none")
        if direction == 0 and claim.verdict == "not shown"
        else claim
        for claim, (direction, *_) in zip(claims, _SAMPLED.values(), strict=True)
    ]


def _mean(table: pd.DataFrame) -> list[Claim]:
    texts = {
        method: f"(b) The total correlation of mean codes rises with the strength: {label(method)} ({quoted})"
        for method, quoted in _MEAN.items()
    }
    trends = _trends(table, "mean", "Figure 3", texts, dict.fromkeys(_MEAN, 1))
    return judge_together([*trends, _low_with_dip_vae(table)])


def _trends(
    table: pd.DataFrame, representation: str, figure: str, texts: dict[str, str], signs: dict[str, int]
) -> list[tuple[Claim, Evidence | None]]:
    """Claims that the total correlation rises (1) or falls (-1) with the strength of a method, and their tests."""
    result: list[tuple[Claim, Evidence | None]] = []
    for method, text in texts.items():
        claim = Claim(text, f"section 5.2, {figure}", data=data_of(table))
        try:
            rows = _total_correlation(table, method, representation)
        except NotInStudyError as error:
            result.append((claim.not_tested(error), None))
            continue
        test = trend_test(rows["value"], rows["strength"], rows["seed"])
        evidence = Evidence(signs[method] * test.effect, test.p, test.smallest)
        result.append((_measured(claim, rows, test.effect), evidence))
    return result


def _low_with_dip_vae(table: pd.DataFrame) -> tuple[Claim, Evidence | None]:
    claim = Claim(
        "(b) The total correlation of mean codes is consistently low with DIP-VAE-I: below that of the plain VAE",
        "section 5.2, Figure 3",
        data=data_of(table),
    )
    try:
        low, plain = _total_correlation(table, "dip_vae_i", "mean", 1), _plain_vae(table)
    except NotInStudyError as error:
        return claim.not_tested(error), None
    both = pd.concat([low.assign(order=0), plain.assign(order=1)])
    test = trend_test(both["value"], both["order"], both["seed"])
    text = (
        f"DIP-VAE-I {number(low['value'].min())} to {number(low['value'].max())} nats (median "
        f"{number(low['value'].median())}), VAE {number(plain['value'].min())} to {number(plain['value'].max())}"
    )
    return claim.with_measured(text, both), Evidence(test.effect, test.p, test.smallest)


def _mean_above_sampled(table: pd.DataFrame) -> list[Claim]:
    claim = Claim(
        "(c) The total correlation of mean codes is higher than that of sampled codes for a large number of models",
        "section 5.2, Figure 4",
        data=data_of(table),
    )
    try:
        both = mean_and_sampled(table)
    except NotInStudyError as error:
        return [claim.not_tested(error)]
    if both.empty:
        return [claim.not_tested("no run has both")]
    from scipy import stats

    above = both["mean"] > both["sampled"]
    p = float(stats.binomtest(int(above.sum()), len(above)).pvalue)
    shares = above.groupby(both["method"], sort=False).agg(["sum", "size"])
    each = ", ".join(f"{label(str(name))} {row['sum']} of {row['size']}" for name, row in shares.iterrows())
    effect = 2 * float(above.mean()) - 1
    one = judge([Evidence(effect, p, 2.0 ** (1 - len(above)))])[0]
    text = f"in {above.sum()} of {len(above)} runs ({each}); sign test over runs"
    return [claim.with_measured(text, both).judged(one)]


def _total_correlation(
    table: pd.DataFrame, method: str, representation: str, strengths: int = 2
) -> pd.DataFrame:
    rows = main_runs(select(independent_noise(table, [METRIC]), METRIC, representation))
    rows = rows[rows["method"] == method].dropna(subset="value")
    if rows["strength"].nunique() < strengths:
        raise NotInStudyError(_lack(rows, method, strengths))
    return rows


def _lack(rows: pd.DataFrame, method: str, strengths: int = 1) -> str:
    if rows.empty:
        return f"the study has no finished runs of {label(method)}"
    return (
        f"the study has {label(method)} with {rows['strength'].nunique()} of at least {strengths} strengths"
    )


def _plain_vae(table: pd.DataFrame) -> pd.DataFrame:
    """Of the runs that are plain VAEs, the total correlation of mean codes: each seed once."""
    rows = main_runs(select(independent_noise(table, [METRIC]), METRIC, "mean")).dropna(subset="value")
    names = {"vae": math.nan, "beta_vae": 1.0, "beta_tcvae": 1.0}
    for method, strength in names.items():
        part = rows[(rows["method"] == method) & (math.isnan(strength) | (rows["strength"] == strength))]
        if not part.empty:
            return part
    raise NotInStudyError("the study has no finished runs of a plain VAE")


def _measured(claim: Claim, rows: pd.DataFrame, effect: float) -> Claim:
    medians = rows.groupby("strength")["value"].median()
    values = ", ".join(number(value) for value in medians)
    name = rows["strength_name"].iloc[0]
    text = f"medians {values} nats at {name} {', '.join(f'{s:g}' for s in medians.index)}; Kendall's tau {effect:.2f}"
    return claim.with_measured(text, rows)


# --- methods, strengths and seeds ----------------------------------------------------------------


def _ranges(table: pd.DataFrame) -> list[Claim]:
    claim = Claim(
        "(d) The ranges of scores that methods reach with different strengths overlap",
        "section 5.4, Figure 8: heavily overlapping",
        data=data_of(table),
    )
    try:
        medians = scores_by_strength(table)
    except NotInStudyError as error:
        return [claim.not_tested(error)]
    medians = medians[medians["n"] >= _FEWEST_OF_A_MEDIAN]
    strengths = medians.groupby(["metric", "method"])["strength_index"].transform("nunique")
    medians = medians[strengths >= 2]
    methods = medians.groupby("metric")["method"].transform("nunique")
    medians = medians[methods >= 2]
    if medians.empty:
        why = f"needs two methods with two strengths each, and {_FEWEST_OF_A_MEDIAN} runs of each"
        return [claim.not_tested(why)]
    shares = {}
    for metric, part in medians.groupby("metric", sort=False):
        ends = part.groupby("method")["value"].agg(["min", "max"]).to_numpy()
        overlap = [a[0] <= b[1] and b[0] <= a[1] for a, b in combinations(ends, 2)]
        shares[str(metric)] = float(np.mean(overlap))
    pairs = math.comb(medians["method"].nunique(), 2)
    mean = float(np.mean(list(shares.values())))
    each = ", ".join(f"{metric_label(name)} {share:.0%}" for name, share in shares.items())
    text = f"of {pairs} pairs of methods, the ranges of medians overlap in {mean:.0%} (mean over metrics; {each})"
    rule = "rule: half of the pairs, as the mean over metrics; there is no test"
    verdict: Verdict = "holds" if mean >= 0.5 else "does not hold"
    runs, _ = disentanglement_scores(table)
    used = runs.merge(medians[["method", "variant", "strength_index"]].drop_duplicates())
    return [claim.with_measured(text, used).judged(Judgement(math.nan, verdict, rule))]


def _shares(table: pd.DataFrame) -> list[Claim]:
    claims = [
        Claim(f"(d) {what} matters more than the method", paper, data=data_of(table))
        for what, paper in (
            (
                "The strength",
                "section 5.4, Figures 7 and 8: hyperparameters seem substantially more important",
            ),
            (
                "The seed",
                "beside Figure 7, scores are heavily overlapping; section 5.4 says nothing of seeds",
            ),
        )
    ]
    try:
        runs, metrics = disentanglement_scores(table)
    except NotInStudyError as error:
        return [claim.not_tested(error) for claim in claims]
    runs = _balanced(runs)
    if runs.empty:
        why = "needs two methods with two strengths each, and two seeds that all of these have"
        return [claim.not_tested(why) for claim in claims]
    whole, count = _variance_shares(runs, metrics)
    if not count:
        why = "no metric has different scores, and two seeds of some setting"
        return [claim.not_tested(why) for claim in claims]
    method, strength, rest = whole
    seeds = runs["seed"].unique().tolist()
    text = (
        f"mean over {count} metric{'s' * (count != 1)} of the adjusted shares of variance: method {method:.0%}, "
        f"strength {strength:.0%}, the rest (seeds) {rest:.0%}"
    )
    if len(seeds) < FEWEST:
        why = f"an interval needs {FEWEST} seeds, the study has {len(seeds)}"
        return [claim.with_measured(text, runs).not_tested(why) for claim in claims]
    left = [_variance_shares(runs[runs["seed"] != seed], metrics)[0] for seed in seeds]
    result = []
    for claim, index in zip(claims, (1, 2), strict=True):
        difference = whole[index] - method
        low, high = jackknife_interval(difference, [each[index] - each[0] for each in left])
        # The interval decides: its ends exclude 0 or not.
        verdict: Verdict = "holds" if low > 0 else "does not hold" if high < 0 else "not shown"
        reason = f"difference {difference:.0%}, 95 % interval [{low:.0%}, {high:.0%}] (jackknife over seeds)"
        if math.isnan(low):
            verdict, reason = "not tested", "no share without one of the seeds"
        result.append(claim.with_measured(text, runs).judged(Judgement(math.nan, verdict, reason)))
    return result


def _balanced(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of two seeds or more and of the settings that have all of them; two methods with two strengths each.

    Seeds are taken in the order of how many settings have them, as many as leave most runs. Of a study that is under
    way, settings with some of the seeds and seeds with some of the settings are left out; if nothing is left, all are.
    """
    setting = runs.groupby(["method", "variant", "strength_index"], dropna=False).ngroup()
    done = pd.crosstab(setting, runs["seed"]) > 0
    done = done[done.sum().sort_values(ascending=False, kind="stable").index]
    parts = []
    for count in range(2, done.shape[1] + 1):
        settings = done.index[done.iloc[:, :count].all(axis=1)]
        part = runs[setting.isin(settings) & runs["seed"].isin(done.columns[:count])]
        if (part.groupby("method")["strength_index"].nunique() >= 2).sum() >= 2:
            parts.append(part)
    return max(parts, key=len, default=runs.iloc[:0])


def _variance_shares(runs: pd.DataFrame, metrics: list[str]) -> tuple[tuple[float, ...], int]:
    """Of method, strength within method, and seeds: the mean over metrics of their adjusted shares, and of how many."""
    methods = runs.groupby(["method", "variant"], dropna=False).ngroup()
    settings = runs.groupby(["method", "variant", "strength_index"], dropna=False).ngroup()
    shares = []
    for metric in metrics:
        known = runs[metric].notna()
        values = runs.loc[known, metric]
        if len(values) > 2:
            both = [variance_shares(values, groups[known])[1] for groups in (methods, settings)]
            if not np.isnan(both).any():
                shares.append((both[0], both[1] - both[0], 1 - both[1]))
    return tuple(np.mean(shares, axis=0).tolist()) if shares else (math.nan,) * 3, len(shares)


# --- metrics and what they are correlated with ---------------------------------------------------


def _agreement(table: pd.DataFrame) -> list[Claim]:
    together = Claim(
        "(e) BetaVAE score, FactorVAE score and MIG agree",
        "section 5.3, Figure 6: substantially correlated",
        data=data_of(table),
    )
    others = Claim(
        "(e) Other pairs of metrics (with DCI, modularity or SAP) are not significantly correlated",
        "section 5.3, Figure 6",
        data=data_of(table),
    )
    try:
        runs, metrics = disentanglement_scores(table, at_least=2)
    except NotInStudyError as error:
        return [together.not_tested(error), others.not_tested(error)]
    pairs = list(combinations(metrics, 2))
    agreeing = [pair for pair in pairs if set(pair) <= set(_AGREEING)]
    result = []
    if len(agreeing) == 3:
        tests, judgements = _correlations(runs, agreeing)
        result.append(together.with_measured(_pairs_text(tests), runs).judged(_all_of(agreeing, judgements)))
    else:
        result.append(together.not_tested("the study lacks one of the three"))
    rest = [pair for pair in pairs if pair not in agreeing]
    if rest:
        tests, judgements = _correlations(runs, rest)
        names = [_pair_name(row, column) for row, column in rest]
        p, verdict, reason = absence(zip(names, tests["value"], judgements, strict=True), "rank correlations")
        low, middle, high = (
            correlation_text(value)
            for value in (tests["value"].min(), tests["value"].median(), tests["value"].max())
        )
        text = f"rank correlations {low} to {high}, median {middle}" if middle != "none" else "no correlation"
        result.append(others.with_measured(text, runs).judged(Judgement(p, verdict, reason)))
    else:
        result.append(others.not_tested("the study has none of these metrics"))
    return result


def _all_of(pairs: list[tuple[str, str]], judgements: list[Judgement]) -> Judgement:
    """The judgement that all of some correlations are positive: the least favourable one decides."""
    for verdict in ("does not hold", "not tested"):
        of_verdict = [
            (one, _pair_name(*pair))
            for pair, one in zip(pairs, judgements, strict=True)
            if one.verdict == verdict
        ]
        if of_verdict:
            one, name = of_verdict[0]
            return Judgement(one.p, one.verdict, f"{name}: {one.reason}")
    worst = max(one.p for one in judgements)
    shown = all(one.verdict == "holds" for one in judgements)
    return Judgement(worst, "holds" if shown else "not shown", f"largest p of the three {p_text(worst)}")


def _unsupervised(table: pd.DataFrame) -> list[Claim]:
    names = {
        "unsupervised.reconstruction": "reconstruction error",
        "gaussian_total_correlation": "total correlation of sampled codes",
        "unsupervised.kl": "KL divergence",
        "unsupervised.elbo": "evidence lower bound",
    }
    claims = {
        score: Claim(
            f"(g) Disentanglement cannot be selected without labels by the {names[score]}",
            "section 5.5, Figure 9: no clear pattern",
            data=data_of(table),
        )
        for score in UNSUPERVISED_SCORES
    }
    try:
        runs, metrics = disentanglement_scores(table)
    except NotInStudyError as error:
        return [claim.not_tested(error) for claim in claims.values()]
    present = []
    for score, representation in UNSUPERVISED_SCORES.items():
        try:
            values = select(independent_noise(table, [score]), score, representation).set_index("run")[
                "value"
            ]
            runs = runs.assign(**{score: runs["run"].map(values)})
            present.append(score)
        except NotInStudyError as error:
            claims[score] = claims[score].not_tested(error)
    return _patterns(runs, claims, present, metrics, "it selects")


def _efficiency(table: pd.DataFrame) -> list[Claim]:
    claims, result = {}, []
    for learner, short in LEARNERS.items():
        claim = Claim(
            f"(h) Disentangled codes do not need fewer labels: statistical efficiency of {short} (accuracy from 100 "
            "labels over that from 10,000)",
            "section 5.6, Figures 13 and 14: no evidence of higher efficiency",
            data=data_of(table),
        )
        try:
            runs, metrics = statistical_efficiency(table, learner)
            claims = {"efficiency": claim}
            result += _patterns(
                runs, claims, ["efficiency"], metrics, "efficiency rises with the scores", positive=True
            )
        except NotInStudyError as error:
            result.append(claim.not_tested(error))
    return result


def _patterns(
    runs: pd.DataFrame,
    claims: dict[str, Claim],
    present: list[str],
    metrics: list[str],
    if_not: str,
    positive: bool = False,
) -> list[Claim]:
    """Claims that a score has no clear pattern of rank correlations with the metrics, all tested as one family.

    It does not hold where more than half of the metrics have p < 0.05 with one sign, and none with the other; it holds
    where some are correlated positively and others negatively; else it is not shown. With ``positive``, the claim is
    that there is no positive pattern, and a negative one is the opposite: then it holds.
    """
    pairs = [(score, metric) for score in present for metric in metrics]
    tests, judgements = _correlations(runs, pairs)
    result = []
    for score, claim in claims.items():
        if score not in present:
            result.append(claim)
            continue
        of_score = [
            (metric, value, one)
            for (name, metric), value, one in zip(pairs, tests["value"], judgements, strict=True)
            if name == score
        ]
        text = "rank correlations: " + ", ".join(
            f"{metric_label(m)} {correlation_text(v)}" for m, v, _ in of_score
        )
        tested = [one for *_, one in of_score if not math.isnan(one.p)]
        up = [metric for metric, value, one in of_score if one.p < LEVEL and value > 0]
        down = [metric for metric, value, one in of_score if one.p < LEVEL and value < 0]
        p = min((one.p for one in tested), default=math.nan)
        verdict: Verdict = "not shown"
        reason = f"p < 0.05 for {len(up) + len(down)} of {len(tested)} metrics: neither a pattern nor a contradiction"
        if up and down:
            verdict = "holds"
            reason = f"p < 0.05 and positive: {_list(up)}; negative: {_list(down)}"
        elif len(up or down) > len(metrics) / 2:
            sign = "positive" if up else "negative"
            reason = f"p < 0.05 and {sign} for {_list(up or down)}"
            if positive and down:
                verdict = "holds"
            else:
                verdict, reason = "does not hold", f"{if_not}: {reason}"
        elif all(one.verdict == "not tested" for *_, one in of_score):
            verdict, reason = "not tested", (tested or [of_score[0][2]])[0].reason
        result.append(claim.with_measured(text, runs).judged(Judgement(p, verdict, reason)))
    return result


def _correlations(runs: pd.DataFrame, pairs: list[tuple[str, str]]) -> tuple[pd.DataFrame, list[Judgement]]:
    """Rank correlations with permutation tests within seeds, and the judgement that each is positive.

    A pair without a correlation is no test, and does not count for the others' correction.
    """
    tests = correlation_tests(runs, pairs)
    evidence = [
        Evidence(value, p, _smallest_of(runs.dropna(subset=[row, column])))
        for row, column, value, p in zip(
            tests["row"], tests["column"], tests["value"], tests["p"], strict=True
        )
        if not math.isnan(value)
    ]
    judged = iter(judge(evidence))
    untested = Judgement(
        math.nan, "not tested", "fewer than three runs have both scores, or all runs have the same"
    )
    return tests, [untested if math.isnan(value) else next(judged) for value in tests["value"]]


def _smallest_of(runs: pd.DataFrame) -> float:
    """The smallest two-sided p that permutations within seeds can give."""
    counts = runs.groupby("seed").size()
    arrangements = math.exp(min(50.0, sum(math.lgamma(count + 1) for count in counts)))
    return min(2.0 / arrangements, 1.0)


def _pair_name(row: str, column: str) -> str:
    return f"{metric_label(row)} and {metric_label(column)}"


def _pairs_text(tests: pd.DataFrame) -> str:
    named = zip(tests["row"], tests["column"], tests["value"], strict=True)
    return "rank correlations: " + ", ".join(
        f"{_pair_name(row, column)} {correlation_text(value)}" for row, column, value in named
    )


def _list(metrics: list[str]) -> str:
    return ", ".join(map(metric_label, metrics))


# --- selection -----------------------------------------------------------------------------------

_NO_TRANSFER = "55.0 %; section 6: does not transfer"
_BARELY = ("51.8 %, barely better than chance", "51.9 %, barely better than chance")
_CELLS = [
    ("metric", "same", "same", 1, "A setting chosen by a metric on one seed beats a random one on another", "77.3 %"),
    ("metric", "same", "different", 0, "The same, compared on another data set: no better than chance", _NO_TRANSFER),
    ("metric", "different", "same", 0, "The same, compared by another metric: no better than chance", _BARELY[0]),
    ("metric", "different", "different", 0, "Both, another metric and data set: no better than chance", _BARELY[1]),
    ("udr", "any", "same", 1, "A setting chosen by UDR beats a random one", ""),
    ("unsupervised.elbo", "any", "same", 0, "A setting chosen by the ELBO is no better than chance", ""),
]  # fmt: skip


def _selection(table: pd.DataFrame) -> list[Claim]:
    claims = [
        Claim(f"(f) {text}", f"Table 1: {share}" if share else "beside Table 1, not in the paper")
        for *_, text, share in _CELLS
    ]
    try:
        cells, settings, runs = selection_tests(table, [cell[:3] for cell in _CELLS])
    except NotInStudyError as error:
        return [claim.not_tested(error) for claim in claims]
    present = [index for index, cell in enumerate(cells) if isinstance(cell, Selection)]
    judgements = dict(zip(present, judge([_evidence(cells[index]) for index in present]), strict=True))
    result = []
    for index, (claim, cell) in enumerate(zip(claims, cells, strict=True)):
        if not isinstance(cell, Selection):
            result.append(claim.not_tested(cell))
            continue
        text = (
            f"better or equal in {cell.probability:.1%} of all trials, by chance {cell.chance:.1%} (among {settings} "
            "settings)"
        )
        one, expected = judgements[index], _CELLS[index][3]
        if expected == 0 and one.verdict == "holds":
            one = Judgement(one.p, "does not hold", f"{one.reason}: better than chance")
        elif expected == 0 and one.verdict == "does not hold":
            one = Judgement(one.p, "holds", f"p = {one.p:.2g}: worse than chance")
        elif expected == 0 and one.verdict == "not shown":
            one = Judgement(
                one.p, "not shown", f"{one.reason}: no difference from chance shown, not evidence of none"
            )
        result.append(claim.with_measured(text, runs).judged(one))
    return result


def _evidence(cell: Selection | str) -> Evidence:
    assert isinstance(cell, Selection)
    return Evidence(cell.probability - cell.chance, cell.p, cell.smallest)
