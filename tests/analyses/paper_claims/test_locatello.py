import numpy as np
import pytest

from unweave.analyses import claims, outperforming_random
from unweave.analyses.paper_claims.locatello import locatello_claims
from unweave.analyses.selection_test import selection_tests

TC = "gaussian_total_correlation"
METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")
GRID = {name: (1.0, 2.0, 6.0) for name in ("beta_vae", "beta_tcvae", "factor_vae", "dip_vae_i", "dip_vae_ii")}


def noise(run, rng):
    scores = {(metric, "mean"): rng.random() for metric in (*METRICS, "udr")}
    scores |= {(TC, kind): rng.random() for kind in ("mean", "sampled")}
    scores |= {(f"unsupervised.{part}", "sampled"): rng.random() for part in ("reconstruction", "kl", "elbo")}
    scores |= {("downstream_gbt.efficiency", "mean"): rng.random()}
    return scores


def with_tc(mean, sampled):
    def score(run, rng):
        of_run = noise(run, rng)
        of_run[TC, "mean"] = np.exp(mean * run["strength"] + rng.normal(0, 0.1))
        of_run[TC, "sampled"] = np.exp(sampled * run["strength"] + rng.normal(0, 0.1))
        return of_run

    return score


def test_nothing_is_decided_on_noise_but_what_noise_is(simulate):
    judged = locatello_claims(simulate(GRID, noise, seeds=5))
    decided = {c.claim[:60]: c.verdict for c in judged if c.verdict in ("holds", "does not hold")}
    # Of noise it is true that ranges overlap, and that nothing but the seed matters.
    assert set(decided) == {
        "(d) The ranges of scores that methods reach with different s",
        "(d) The seed matters more than the method",
    }
    assert set(decided.values()) == {"holds"}
    assert any(c.verdict == "not shown" for c in judged)


@pytest.mark.parametrize(
    ("slope", "falls", "rises"), [(-0.5, "holds", "does not hold"), (0.5, "does not hold", "holds")]
)
def test_trends_of_total_correlation(simulate, verdicts, slope, falls, rises):
    judged = locatello_claims(simulate(GRID, with_tc(slope, slope), seeds=4))
    assert verdicts(judged, "(a)", "falls with the strength") == [falls] * 4
    assert verdicts(judged, "(a)", "does not fall") == [rises]
    assert verdicts(judged, "(b)", "rises with the strength") == [rises] * 3


def test_two_seeds_are_no_test_of_a_trend(simulate, verdicts):
    judged = locatello_claims(simulate(GRID, with_tc(-0.5, -0.5), seeds=2))
    assert verdicts(judged, "(a)", "falls") == ["not tested"] * 4


@pytest.mark.parametrize(("low", "verdict"), [(0.01, "holds"), (50.0, "does not hold")])
def test_dip_vae_i_is_low_or_not(simulate, verdicts, low, verdict):
    def score(run, rng):
        of_run = noise(run, rng)
        of_run[TC, "mean"] = (low if run["method"] == "dip_vae_i" else 1.0) * rng.lognormal(0, 0.1)
        return of_run

    assert verdicts(locatello_claims(simulate(GRID, score, seeds=4)), "consistently low") == [verdict]


@pytest.mark.parametrize(("ratio", "verdict"), [(3, "holds"), (1 / 3, "does not hold")])
def test_mean_codes_above_sampled_ones(simulate, verdicts, ratio, verdict):
    def score(run, rng):
        return {(TC, "mean"): ratio * rng.lognormal(0, 0.1), (TC, "sampled"): rng.lognormal(0, 0.1)}

    assert verdicts(locatello_claims(simulate(GRID, score)), "(c)") == [verdict]


@pytest.mark.parametrize(("of_method", "of_strength", "verdict"), [(0, 1, "holds"), (1, 0, "does not hold")])
def test_what_explains_the_scores(simulate, verdicts, of_method, of_strength, verdict):
    def score(run, rng):
        level = of_method * 5 * list(GRID).index(run["method"]) + of_strength * 5 * run["strength"]
        return {(metric, "mean"): level + rng.normal() for metric in METRICS}

    judged = locatello_claims(simulate(GRID, score, seeds=5))
    assert verdicts(judged, "(d) The strength") == [verdict]
    assert verdicts(judged, "(d) The ranges") == [verdict]


def test_shares_of_few_seeds_are_shown_without_an_interval(simulate):
    judged = locatello_claims(simulate(GRID, noise, seeds=4))
    shares = [claim for claim in judged if "matters more than the method" in claim.claim]
    assert [claim.verdict for claim in shares] == ["not tested"] * 2
    assert all("shares of variance" in claim.measured and "95 %" not in claim.reason for claim in shares)


def test_a_method_that_is_far_ahead_does_not_push_out_the_others(simulate):
    """It alone has more runs than all have of the seeds that they share, and says nothing about methods."""
    table = simulate(GRID, noise, seeds=24)
    first = table["method"].unique()[0]
    under_way = table[(table["method"] == first) | (table["seed"] < 4)]
    shares = [claim for claim in locatello_claims(under_way) if "matters more than the method" in claim.claim]
    assert {claim.reason for claim in shares} == {"an interval needs 5 seeds, the study has 4"}
    alone = table[table["method"] == first]
    shares = [claim for claim in locatello_claims(alone) if "matters more than the method" in claim.claim]
    assert all("needs two methods with two strengths each, and two seeds" in claim.reason for claim in shares)


@pytest.mark.parametrize("begun", [False, True])
def test_seeds_that_some_methods_lack_do_not_count_for_shares(simulate, begun):
    """Of a study under way, one method may have more seeds than the others, and another a single run."""
    table = simulate(GRID, noise, seeds=6)
    first, last = table["method"].unique()[[0, -1]]
    under_way = table[(table["method"] == first) | (table["seed"] < 4)]
    if begun:
        under_way = under_way[
            (under_way["method"] != last) | (under_way["seed"] == 0) & (under_way["strength"] == 1)
        ]
    shares = [claim for claim in locatello_claims(under_way) if "matters more than the method" in claim.claim]
    assert {claim.reason for claim in shares} == {"an interval needs 5 seeds, the study has 4"}
    assert all("nan" not in claim.measured for claim in shares)
    whole = [claim for claim in locatello_claims(table) if "matters more than the method" in claim.claim]
    assert all("95 %" in claim.reason for claim in whole)


def test_metrics_that_agree(simulate, verdicts):
    def score(sign):
        def of_run(run, rng):
            quality = rng.normal()
            values = {(metric, "mean"): rng.normal() for metric in METRICS}
            for metric, factor in (("beta_vae", 1), ("factor_vae", 1), ("mig", sign)):
                values[metric, "mean"] = factor * quality + rng.normal(0, 0.3)
            return values

        return of_run

    agree = locatello_claims(simulate(GRID, score(1), seeds=5))
    assert verdicts(agree, "(e) BetaVAE") == ["holds"]
    assert verdicts(agree, "(e) Other") == ["not shown"]
    assert verdicts(locatello_claims(simulate(GRID, score(-1), seeds=5)), "(e) BetaVAE") == ["does not hold"]

    def all_alike(run, rng):
        quality = rng.normal()
        return {(metric, "mean"): quality + rng.normal(0, 0.3) for metric in METRICS}

    assert verdicts(locatello_claims(simulate(GRID, all_alike)), "(e) Other") == ["does not hold"]


def test_unsupervised_scores_and_efficiency(simulate, verdicts):
    def score(signs):
        def of_run(run, rng):
            quality, values = rng.normal(), noise(run, rng)
            for metric, sign in zip(METRICS, signs, strict=True):
                values[metric, "mean"] = sign * quality + rng.normal(0, 0.2)
            for name in ("unsupervised.elbo", "downstream_gbt.efficiency"):
                values[name, "sampled" if "elbo" in name else "mean"] = quality + rng.normal(0, 0.2)
            return values

        return of_run

    selects = locatello_claims(simulate(GRID, score([1] * 6), seeds=5))
    assert verdicts(selects, "(g)", "evidence lower bound") == ["does not hold"]
    assert verdicts(selects, "(g)", "KL") == ["not shown"]
    assert verdicts(selects, "(h)", "GBT") == ["does not hold"]
    assert verdicts(selects, "(h)", "LR") == ["not tested"]
    mixed = locatello_claims(simulate(GRID, score([1, 1, 1, -1, -1, -1]), seeds=5))
    assert verdicts(mixed, "(g)", "evidence lower bound") == ["holds"]
    assert verdicts(mixed, "(h)", "GBT") == ["holds"]
    worse = locatello_claims(simulate(GRID, score([-1] * 6), seeds=5))
    assert verdicts(worse, "(g)", "evidence lower bound") == ["does not hold"]  # the lowest can be chosen
    assert verdicts(worse, "(h)", "GBT") == ["holds"]  # efficiency falls: disentanglement does not buy it


def test_a_choice_that_carries_over(simulate, verdicts):
    def score(run, rng):
        values = {(metric, "mean"): 3 * list(GRID).index(run["method"]) + rng.normal() for metric in METRICS}
        values["udr", "mean"] = values["mig", "mean"]
        values["unsupervised.elbo", "sampled"] = -values["mig", "mean"]
        return values

    table = simulate(GRID, score, seeds=4)
    judged = locatello_claims(table)
    assert verdicts(judged, "(f) A setting chosen by a metric") == ["holds"]
    assert verdicts(judged, "(f)", "by another metric") == ["does not hold"]
    assert verdicts(judged, "(f)", "UDR") == ["holds"]
    assert verdicts(judged, "(f)", "ELBO") == ["holds"]  # worse than chance, as its claim says no better
    assert verdicts(judged, "(f)", "another data set") == ["not tested"]


def test_the_exact_probabilities_are_those_of_the_draws(simulate):
    table = simulate(GRID, noise, seeds=3, data=("dsprites", "cars3d"))
    table = table[~table["run"].isin(table["run"].unique()[::7])]  # runs are missing
    drawn = outperforming_random(table, draws=200_000).set_index(["chosen_by", "metric", "data"])[
        "probability"
    ]
    questions = [key for key in drawn.index if key[0] != "chance"]
    cells, settings, _ = selection_tests(table, questions, draws=2)
    assert settings == 15
    assert len(questions) == 8
    for question, cell in zip(questions, cells, strict=True):
        assert cell.probability == pytest.approx(drawn[question], abs=0.006), question


def texts(judged):
    return " ".join(f"{claim.measured} {claim.reason}" for claim in judged)


def without_value(table, metric, most):
    """All but ``most`` runs lack the metric."""
    kept = table.loc[table["metric"] == metric, "run"].unique()[:most]
    return table[(table["metric"] != metric) | table["run"].isin(kept)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["constant", "empty", "in two runs"])
@pytest.mark.parametrize("metrics", [("mig",), METRICS, (TC, "unsupervised.kl", "downstream_gbt.efficiency")])
def test_scores_that_say_nothing_are_no_numbers_and_no_tests(simulate, kind, metrics):
    table = simulate(GRID, noise, seeds=5)
    chosen = table["metric"].isin(metrics)
    if kind == "constant":
        table.loc[chosen, "value"] = 0.5
    elif kind == "empty":
        table.loc[chosen, "value"] = np.nan
    else:
        for metric in metrics:
            table = without_value(table, metric, 2)
    judged = locatello_claims(table)
    assert "nan" not in texts(judged)
    if "mig" in metrics:
        agree = next(claim for claim in judged if claim.claim.startswith("(e) BetaVAE"))
        assert agree.verdict == "not tested"
        assert "fewer than three runs have both scores" in agree.reason


@pytest.mark.filterwarnings("error")
def test_any_part_of_a_study_is_judged_without_a_crash(simulate):
    table = simulate(GRID, noise, seeds=3)
    rng = np.random.default_rng(0)
    for share in (0.02, 0.1, 0.3, 0.6):
        for column in ("run", "metric", "value"):
            some = table[column].unique()
            kept = rng.choice(some, max(1, int(share * len(some))), replace=False)
            part = table[table[column].isin(kept)]
            assert "nan" not in texts(locatello_claims(part)), (share, column)


def test_metrics_that_disagree_are_named_with_their_p(simulate):
    def score(run, rng):
        quality = rng.normal()
        signs = {"beta_vae": 1, "factor_vae": -1, "mig": 0}
        return {(metric, "mean"): sign * quality + rng.normal(0, 0.3) for metric, sign in signs.items()}

    agree = next(
        c for c in locatello_claims(simulate(GRID, score, seeds=5)) if c.claim.startswith("(e) Beta")
    )
    assert agree.verdict == "does not hold"
    assert agree.p < 0.05
    assert agree.reason.startswith("BetaVAE and FactorVAE: p")


def test_ranges_of_single_runs_are_not_tested(simulate, verdicts):
    table = simulate(GRID, noise, seeds=2)
    judged = [claim for claim in locatello_claims(table) if claim.claim.startswith("(d) The ranges")]
    assert [claim.reason for claim in judged] == [
        "needs two methods with two strengths each, and 3 runs of each"
    ]
    whole = simulate(GRID, noise, seeds=3)
    assert verdicts(locatello_claims(whole), "(d) The ranges") == ["holds"]
    fewer = whole[~((whole["method"] == "beta_vae") & (whole["strength"] > 1))]  # one strength has no range
    ranges = next(claim for claim in locatello_claims(fewer) if claim.claim.startswith("(d) The ranges"))
    assert "of 6 pairs of methods" in ranges.measured
    assert ranges.n == "36 runs, 3 seeds"


@pytest.mark.parametrize(("shared", "verdict"), [(True, "does not hold"), (False, "not shown")])
def test_a_choice_that_carries_over_to_another_data_set_contradicts_the_paper(
    simulate, verdicts, shared, verdict
):
    def score(run, rng):
        quality = 3 * list(GRID).index(run["method"]) if shared else 0
        return {(metric, "mean"): quality + rng.normal() for metric in METRICS}

    judged = locatello_claims(simulate(GRID, score, seeds=4, data=("dsprites", "cars3d")))
    assert verdicts(judged, "(f) The same, compared on another data set") == [verdict]


def test_an_empty_table_has_all_claims_untested(simulate):
    table = claims(simulate(GRID, noise, seeds=0))
    assert set(table["verdict"]) == {"not tested"}
    assert (table["reason"] != "").all()
