import pytest

import unweave as uw
from unweave.analyses.paper_claims.identifiability import (
    RANK,
    RUNS,
    SIMULATED,
    identifiability_claims,
    simulated_data,
)
from unweave.analyses.paper_claims.mita import mita_claims

METRICS = ("mcc", "linear_r2")
GRID = {"vae": (float("nan"),), "ivae": (1.0,), "idvae": (1.0,)}
# The quality of what a prior with enough segments finds is 1, of all else 0.
GOOD = {("ivae", 20), ("idvae", 20)}
RANKS = {("ivae", 2): 1, ("ivae", 5): 4, ("ivae", 20): 4, ("idvae", 20): 4}


def score_with(step, ranks=RANKS, metrics=METRICS):
    """What is good is above all else by ``step``."""

    def score(run, rng):
        kind = next(
            (kind for kind in RUNS if (kind[0], simulated_data(kind[1])) == (run["method"], run["data"])),
            None,
        )
        if kind is None:
            return {}
        scores = {(name, "mean"): 0.8 + step * (kind in GOOD) + rng.normal(0, 0.02) for name in metrics}
        return scores | ({(RANK, "mean"): ranks[kind]} if kind in ranks else {})

    return score


@pytest.fixture
def table(simulate):
    """A table with data sets of all numbers of segments."""

    def make(score, seeds=8, seed=0):
        return simulate(GRID, score, seeds=seeds, data=sorted(SIMULATED), seed=seed)

    return make


@pytest.mark.parametrize(("step", "verdict"), [(0.15, "holds"), (-0.15, "does not hold"), (0.0, "not shown")])
def test_comparisons_of_known_truth(table, verdicts, step, verdict):
    claims = identifiability_claims(table(score_with(step)))
    assert verdicts(claims, "finds the sources better") == [verdict] * 6
    assert all(claim.claim.startswith("(l)") for claim in claims)


def test_all_tests_are_one_family(table):
    """Eight data sets give a sign test p = 2 / 2^8 at least; six of these."""
    claims = identifiability_claims(table(score_with(0.15)))
    assert [claim.p for claim in claims[:6]] == pytest.approx([6 * 2 / 2**8] * 6)
    assert claims[0].n == "16 runs, 8 seeds"
    assert "the first is above in 8 of 8 data sets" in claims[0].measured


def test_six_data_sets_that_all_agree_are_too_few(table, verdicts):
    claims = identifiability_claims(table(score_with(0.15), seeds=6))
    assert verdicts(claims, "finds the sources better") == ["not tested"] * 6
    assert "so few runs cannot give p < 0.05 among 6 tests" in claims[0].reason


def test_ranks(table, verdicts):
    claims = identifiability_claims(table(score_with(0.0)))
    assert verdicts(claims, "has rank") == ["holds", "holds"]
    assert "1 in 8 of 8 runs with 2 segments, 4 in 8 of 8 runs with 5 segments" in claims[6].measured
    claims = identifiability_claims(table(score_with(0.0, {**RANKS, ("ivae", 5): 3})))
    assert verdicts(claims, "has rank") == ["does not hold", "holds"]


def test_one_run_of_another_rank_is_enough(table, verdicts):
    given = table(score_with(0.0))
    rows = (given["method"] == "idvae") & (given["metric"] == RANK) & (given["seed"] == 3)
    given.loc[rows, "value"] = 2.0
    claims = identifiability_claims(given)
    assert verdicts(claims, "has rank") == ["holds", "does not hold"]
    assert "rank 2 in 1 and 4 in 7 of 8 runs" in claims[7].measured


def test_few_ranks_are_not_tested(table, verdicts):
    claims = identifiability_claims(table(score_with(0.0), seeds=4))
    assert verdicts(claims, "has rank") == ["not tested", "not tested"]
    assert claims[6].reason == "needs 5 data sets of each number of segments"


def test_what_is_missing_is_said(table, verdicts):
    given = table(score_with(0.15))
    claims = identifiability_claims(given[given["method"] != "idvae"])
    assert verdicts(claims, "IDVAE") == ["not tested"] * 3
    assert {claim.reason for claim in claims if "IDVAE" in claim.claim and "better" in claim.claim} == {
        "the study has no finished runs of IDVAE with 20 segments"
    }
    assert verdicts(claims, "iVAE finds") == ["holds"] * 4
    assert claims[0].p == pytest.approx(4 * 2 / 2**8)  # fewer tests, a smaller correction

    without = identifiability_claims(given[given["metric"] == "linear_r2"])
    assert verdicts(without, "MCC") == ["not tested"] * 3
    assert verdicts(without, "rank") == ["not tested"] * 2


def test_only_equal_data_sets_are_compared(table, verdicts):
    given = table(score_with(0.15))
    vae, seed = given["method"] == "vae", given["seed"]
    claims = identifiability_claims(given[~vae | (seed < 7)])
    assert claims[0].n == "14 runs, 7 seeds"
    claims = identifiability_claims(given[(vae & (seed < 4)) | (~vae & (seed >= 4))])
    assert claims[0].reason == "no runs of iVAE with 20 segments and VAE with 20 segments on equal data sets"
    given.loc[vae & (seed == 0), "value"] = float("nan")
    assert identifiability_claims(given)[0].n == "14 runs, 7 seeds"


def test_studies_of_images_have_one_row_and_simulated_sources_no_others(table, verdicts):
    images = uw.analyses.simulate_results(["dsprites", "cars3d"], ["beta_vae"], seeds=2)
    (row,) = [claim for claim in mita_claims(images) if claim.claim.startswith("(l)")]
    assert row.verdict == "not tested"
    assert "stored:identifiability" in row.reason
    simulated = mita_claims(table(score_with(0.15)))
    assert {claim.claim[:3] for claim in simulated} == {"(l)"}
    assert {claim.claim[:3] for claim in mita_claims(images.iloc[:0])} == {"(k)", "(l)"}


def test_other_papers_are_not_shown_of_simulated_sources(table):
    judged = uw.analyses.claims(table(score_with(0.15)))
    assert set(judged["claim"].str[:3]) == {"(l)"}


def test_what_is_stored_is_judged():
    stored = uw.study.load_results("stored:identifiability")
    assert stored["run"].nunique() == 8 * len(RUNS)
    assert stored.groupby(["method", "data"])["seed"].nunique().tolist() == [8] * len(RUNS)
    claims = identifiability_claims(stored)
    assert len(claims) == 8
    assert "not tested" not in {claim.verdict for claim in claims}
