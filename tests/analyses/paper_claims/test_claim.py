import numpy as np
import pytest

from unweave.analyses.paper_claims.claim import Evidence, Judgement, absence, judge, label, number
from unweave.figures.style import method_name
from unweave.methods import KL, METHODS, describe, register_method


def test_the_verdict_follows_direction_and_p():
    family = [Evidence(0.5, 0.001), Evidence(-0.5, 0.001), Evidence(0.5, 0.2), Evidence(-0.5, 0.9)]
    assert [one.verdict for one in judge(family)] == ["holds", "does not hold", "not shown", "not shown"]


def test_p_is_corrected_for_all_tests_of_the_claim():
    assert judge([Evidence(1, 0.03)])[0].verdict == "holds"
    corrected = judge([Evidence(1, 0.03), Evidence(1, 0.5)])
    assert corrected[0].p == pytest.approx(0.06)
    assert corrected[0].verdict == "not shown"


def test_too_few_runs_are_no_test():
    one = judge([Evidence(1, 0.25, smallest=0.25)])[0]
    assert one.verdict == "not tested"
    assert "cannot give p < 0.05" in one.reason
    assert judge([Evidence(1, 0.25, smallest=0.001)])[0].verdict == "not shown"


def test_a_test_of_few_runs_beside_decided_ones_is_a_test():
    """By Holm's correction the last of three tests is multiplied by one: 0.03 would have been enough."""
    clear = [Evidence(1, 0.0001), Evidence(1, 0.0001)]
    assert judge([*clear, Evidence(1, 0.03, smallest=0.03)])[2].verdict == "holds"
    assert judge([*clear, Evidence(1, 0.5, smallest=0.03)])[2].verdict == "not shown"
    alike = judge([Evidence(1, 0.5, smallest=0.03)] * 3)
    assert {one.reason for one in alike} == {"so few runs cannot give p < 0.05 among 3 tests"}


def test_of_pure_noise_at_most_one_claim_in_twenty_is_decided():
    rng = np.random.default_rng(0)
    decided = [
        any(
            one.verdict in ("holds", "does not hold")
            for one in judge([Evidence(1, p) for p in rng.random(5)])
        )
        for _ in range(2000)
    ]
    assert np.mean(decided) < 0.065


def test_having_seen_no_relation_is_not_evidence_of_none():
    shown, not_shown = Judgement(0.01, "holds", ""), Judgement(0.4, "not shown", "")
    assert absence([("a", 0.1, not_shown)], "correlations")[1] == "not shown"
    p, verdict, reason = absence([("a", 0.1, not_shown), ("b", -0.8, shown)], "correlations")
    assert (p, verdict) == (0.01, "does not hold")
    assert "b -0.80" in reason
    assert absence([("a", 0.9, Judgement(0.5, "not tested", "few"))], "correlations")[1:] == (
        "not tested",
        "few",
    )


def test_a_relation_without_a_number_counts_for_nothing():
    none, not_shown = Judgement(np.nan, "not tested", "constant"), Judgement(0.4, "not shown", "")
    assert absence([("a", np.nan, none)], "correlations")[1:] == ("not tested", "constant")
    p, verdict, reason = absence([("a", np.nan, none), ("b", 0.1, not_shown)], "correlations")
    assert (p, verdict) == (0.4, "not shown")
    assert reason.startswith("none of 1 correlations")


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (12345.6, "12346"), (-0.01234, "-0.0123"), (np.nan, "none")]
)
def test_numbers_for_people(value, text):
    assert number(value) == text


@pytest.mark.parametrize("name", METHODS)
def test_claims_call_methods_as_figures_do(name):
    assert label(name) == method_name(name) == describe(name).label
    assert label(name, "a variant") == f"{describe(name).label} (a variant)"


def test_claims_know_the_label_of_a_method_of_a_user():
    @register_method("half_vae", label="½-VAE")
    def half_vae(beta: float = 0.5):
        return [KL(beta)]

    try:
        assert label("half_vae") == "½-VAE"
    finally:
        METHODS.unregister("half_vae")
    assert label("half_vae") == "half vae"
