"""The page that tells paper and code apart is written from the values that the protocols have."""

from pathlib import Path

from unweave.study.paper_and_code import as_markdown, differences

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"


def test_the_table_is_that_of_the_protocols():
    assert as_markdown() in PAGE.read_text(encoding="utf-8")


def test_every_difference_is_explained_and_is_one():
    found = {(one.subject, one.setting): one for one in differences()}
    assert all(one.note and one.paper != one.code for one in found.values())
    assert {
        ("training", "architecture"),
        ("training of factor_vae", "steps"),
        ("dci metric", "learner"),
        ("dci metric", "standardised"),
        ("dci metric", "completeness_average"),
        ("sap metric", "standardised"),
        ("explicitness metric", "solver"),
        ("factor_vae metric", "prune"),
        ("gaussian_total_correlation metric", "jitter"),
    } <= set(found)
