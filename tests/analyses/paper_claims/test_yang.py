import numpy as np
import pytest

from unweave.analyses.paper_claims.yang import yang_claims
from unweave.objectives import correlation_constant

GRID = {"vae": (np.nan,), "factor_vae": (10.0,), "beta_tcvae": (3.0,)}


def score_with(mig=1.0, cost=1.0):
    def score(run, rng):
        s = run["correlation"]
        noise = rng.lognormal(0, 0.02)
        kl = 20 * (cost if s else 1) * noise + correlation_constant(s, 10)
        return {
            ("mig", "mean"): 0.2 * (mig if s else 1) * rng.lognormal(0, 0.2),
            ("unsupervised.reconstruction", "sampled"): 30 * (cost if s else 1) * noise,
            ("unsupervised.kl", "sampled"): kl,
            ("factorised_total_correlation", "sampled"): 2 * (cost if s else 1) * noise,
            ("information_invariance", "mean"): 0.3 * (2 if s and mig < 1 else 1) * noise,
        }

    return score


@pytest.mark.parametrize(("factor", "verdict"), [(0.3, "holds"), (3.0, "does not hold"), (1.0, "not shown")])
def test_mig_falls_rises_or_does_neither(simulate, verdicts, factor, verdict):
    table = simulate(GRID, score_with(mig=factor), seeds=8, correlations=(0.0, 0.9))
    assert verdicts(yang_claims(table), "lowers MIG") == [verdict] * 3


def test_terms_unchanged_or_not(simulate, verdicts):
    same = yang_claims(simulate(GRID, score_with(), seeds=8, correlations=(0.0, 0.9)))
    assert verdicts(same, "nearly unchanged") == ["holds"] * 6
    assert verdicts(same, "β-TCVAE", "KL") == ["not shown"]
    half = yang_claims(simulate(GRID, score_with(cost=0.5), seeds=8, correlations=(0.0, 0.9)))
    assert verdicts(half, "nearly unchanged") == ["does not hold"] * 6
    assert verdicts(half, "β-TCVAE", "lower:") == ["holds"] * 2
    assert verdicts(half, "β-TCVAE", "higher") == ["does not hold"]
    # A change of a tenth is where the margin ends.
    edge = yang_claims(simulate(GRID, score_with(cost=0.9), seeds=8, correlations=(0.0, 0.9)))
    assert verdicts(edge, "nearly unchanged") == ["not shown"] * 6


def test_the_gap_of_information_invariance(simulate, verdicts):
    wider = yang_claims(simulate(GRID, score_with(mig=0.5), seeds=8, correlations=(0.0, 0.9)))
    assert verdicts(wider, "information invariance") == ["holds"] * 3
    same = yang_claims(simulate(GRID, score_with(), seeds=8, correlations=(0.0, 0.9)))
    assert verdicts(same, "information invariance") == ["not shown"] * 3


def test_both_forms_of_tcvae_have_their_rows(simulate):
    import pandas as pd

    table = simulate(GRID, score_with(mig=0.3), seeds=8, correlations=(0.0, 0.9))
    rows = table[table["method"] == "beta_tcvae"]
    forms = [
        rows.assign(run=rows["run"] + form, settings=f'{{"correlated": "{form}"}}')
        for form in ("noise", "posterior")
    ]
    both = pd.concat([table[table["method"] != "beta_tcvae"], *forms])
    named = [claim.claim for claim in yang_claims(both) if "MIG" in claim.claim and "TCVAE" in claim.claim]
    assert [name.rpartition(" ")[2] for name in named] == ["noise)", "posterior)"]


def test_few_seeds_and_missing_methods_are_not_tested(simulate, verdicts):
    table = simulate({"vae": (np.nan,)}, score_with(mig=0.3), seeds=2, correlations=(0.0, 0.9))
    assert set(verdicts(yang_claims(table), "(j)")) == {"not tested"}


@pytest.mark.parametrize("seeds", ["equal", "different"])
def test_runs_without_a_counterpart_do_not_count(simulate, seeds):
    """Of a study under way, the correlated runs may have other strengths than the independent ones."""

    def score(run, rng):
        return {
            ("mig", "mean"): 0.1 * run["strength"] + rng.normal(0, 0.001)
        }  # the correlation changes nothing

    table = simulate({"beta_tcvae": (1.0, 6.0)}, score, seeds=8, correlations=(0.0, 0.9))
    strong = table["strength"] == 6.0
    lacking = {
        "equal": (table["correlation"] == 0.9) & strong,
        "different": ((table["correlation"] == 0.9) & strong & (table["seed"] > 0))
        | ((table["correlation"] == 0.0) & ~strong & (table["seed"] > 0)),
    }[seeds]
    claim = next(c for c in yang_claims(table[~lacking]) if "MIG: β-TCVAE" in c.claim)
    assert (claim.verdict, claim.n) == {
        "equal": ("not shown", "16 runs, 8 seeds"),
        "different": ("not tested", "4 runs, 1 seed"),
    }[seeds]


def test_the_margin_names_the_smallest_correlation(simulate):
    judged = yang_claims(simulate(GRID, score_with(), seeds=8, correlations=(0.3, 0.9)))
    assert all("of the mean at s = 0.3" in c.reason for c in judged if "nearly unchanged" in c.claim)
