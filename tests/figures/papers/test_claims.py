"""The table of a paper's claims in a report."""

import pytest

import unweave as uw
from unweave.figures.papers.claims import claim_results
from unweave.study import NotInStudyError, Results


def test_claims_are_rounded_for_readers():
    table = claim_results(Results("yang-32", uw.study.load_results("stored:yang-32")), "yang")
    assert list(table.columns) == ["Claim", "Verdict", "p", "Measured", "n", "Paper", "Reason"]
    assert set(table["Verdict"]) >= {"holds", "does not hold"}
    assert all(text == "" or len(text) <= len("< 0.0001") for text in table["p"])


def test_a_study_that_tests_no_claim_has_no_table_of_them():
    """A single run of a method tests nothing, though there are runs that claims are about."""
    stored = uw.study.load_results("stored:yang-32")
    few = Results("yang-32", stored[stored["seed"] == 0])
    with pytest.raises(NotInStudyError, match=r"test none of the \d+ claims"):
        claim_results(few, "yang")
