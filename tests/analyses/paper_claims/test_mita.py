import pytest

from unweave.analyses.paper_claims.mita import METRICS, mita_claims

GRID = {name: (1.0, 4.0) for name in ("beta_vae", "full_vae", "ivae", "idvae")} | {
    name: (1.0,) for name in ("ss_ivae", "ss_idvae")
}
RANK = {"idvae": 2, "ivae": 1, "ss_idvae": 2, "ss_ivae": 1}


def score_with(step, of_unknown=0.0):
    """Each method is above the next by ``step``; where u is unknown by ``of_unknown``."""

    def score(run, rng):
        modes = {
            "beta_vae": [""],
            "full_vae": [""],
            "ivae": ["given", "unknown"],
            "idvae": ["given", "unknown"],
        }
        scores = {}
        for mode in modes.get(run["method"], ["given", "predicted", "unknown"]):
            size = of_unknown if mode in ("unknown", "predicted") else step
            for metric in METRICS:
                scores[metric, "mean", mode] = 0.5 + size * RANK.get(run["method"], 0) + rng.normal(0, 0.02)
        return scores

    return score


@pytest.mark.parametrize(("step", "verdict"), [(0.2, "holds"), (-0.2, "does not hold"), (0.0, "not shown")])
def test_methods_with_labels_given(simulate, verdicts, step, verdict):
    judged = mita_claims(simulate(GRID, score_with(step), seeds=8))
    assert verdicts(judged, "(k)", ", u given")[:4] == [verdict] * 4
    assert verdicts(judged, "(k)", "u unknown")[:4] == ["not shown"] * 4


def test_each_way_of_getting_labels_is_judged_by_itself(simulate, verdicts):
    judged = mita_claims(simulate(GRID, score_with(0.0, of_unknown=0.2), seeds=10))
    assert verdicts(judged, "SS-IDVAE", "u predicted") == ["holds"]
    assert verdicts(judged, "SS-IDVAE", "u given") == ["not shown"]
    assert verdicts(judged, "(k) IDVAE", "u unknown") == ["holds"] * 3


def test_two_seeds_are_not_tested_and_neither_is_identifiability_of_images(simulate, verdicts):
    judged = mita_claims(simulate(GRID, score_with(0.2), seeds=2))
    assert set(verdicts(judged, "(k)")) == {"not tested"}
    assert verdicts(judged, "(l)") == ["not tested"]
