import pytest

from unweave.analyses.paper_claims.kumar import kumar_claims

GRID = {name: (1.0, 2.0, 6.0, 16.0) for name in ("beta_vae", "dip_vae_i", "dip_vae_ii")}


def score_with(advantage):
    """DIP-VAE-II has a higher score, and a lower error, by so much; those of beta-VAE rise with beta."""

    def score(run, rng):
        better = advantage * {"dip_vae_ii": 2, "dip_vae_i": 1}.get(run["method"], 0)
        return {
            ("sap", "mean"): 0.1 + better + 0.01 * run["strength"] * bool(advantage) + rng.normal(0, 0.01),
            ("z_diff", "mean"): 0.8 + better + rng.normal(0, 0.01),
            ("unsupervised.l2", "mean"): 30
            - 50 * better
            + run["strength"] * bool(advantage)
            + rng.normal(0, 1),
        }

    return score


@pytest.mark.parametrize(
    ("advantage", "verdict"), [(0.5, "holds"), (-0.5, "does not hold"), (0.0, "not shown")]
)
def test_trade_offs(simulate, verdicts, advantage, verdict):
    judged = kumar_claims(simulate(GRID, score_with(advantage), seeds=4))
    assert verdicts(judged, "better than") == [verdict] * 3
    assert verdicts(judged, "rises with beta") == ["holds" if advantage else "not shown"] * 2


def test_a_higher_score_at_a_higher_error_is_no_better_trade(simulate, verdicts):
    def score(run, rng):
        dip = run["method"] != "beta_vae"
        return {
            ("sap", "mean"): 0.1 + 0.5 * dip + rng.normal(0, 0.01),
            ("unsupervised.l2", "mean"): 30 + 30 * dip + rng.normal(0, 1),
        }

    assert verdicts(kumar_claims(simulate(GRID, score)), "SAP and", "than β-VAE") == ["not shown"]


def test_one_seed_of_one_strength_is_not_tested(simulate, verdicts):
    judged = kumar_claims(simulate({name: (1.0,) for name in GRID}, score_with(0.5), seeds=1))
    assert set(verdicts(judged, "(i)")) == {"not tested"}


def test_one_strength_is_no_trade_off(simulate):
    """The others of a method may not be finished yet."""
    table = simulate(GRID, score_with(0.5), seeds=8)
    part = table[(table["method"] != "dip_vae_ii") | (table["strength"] == 1.0)]
    judged = [claim for claim in kumar_claims(part) if "DIP-VAE-II" in claim.claim]
    assert {claim.verdict for claim in judged} == {"not tested"}
    assert {claim.reason for claim in judged} == {"the study has DIP-VAE-II with one strength"}
