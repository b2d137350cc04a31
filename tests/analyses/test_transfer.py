import pytest

from unweave.analyses.transfer import between_data, setting_medians
from unweave.study import NotInStudyError


def test_data_sets_are_compared_on_the_medians_of_settings(make_table):
    signs = {"a": 1, "b": 2, "c": -1}
    # The outlier of one seed would reverse the order of means, not of medians.
    table = make_table(
        lambda d, h, s, m: signs[d] * (100 - 100 * h if s == 0 else h), tuple(signs), settings=5, seeds=5
    )
    found = between_data(table).set_index(["row", "column"])
    assert found.loc[("a", "b"), "value"] == pytest.approx(1)
    assert found.loc[("a", "c"), "value"] == pytest.approx(-1)
    assert (found["n"] == 5).all()


def test_medians_keep_the_order_of_metrics_and_data(make_table):
    table = make_table(lambda d, h, s, m: h + s, ("z", "a"), settings=2, seeds=3, metrics=("sap", "mig"))
    found = setting_medians(table)
    assert found["metric"].unique().tolist() == ["mig", "sap"]
    assert found["data"].unique().tolist() == ["z", "a"]
    assert found["value"].tolist() == [1, 2] * 4
    assert found["setting"].tolist() == [0, 1] * 4


def test_settings_that_one_data_set_lacks_are_not_compared(make_table):
    table = make_table(lambda d, h, s, m: None if d == "b" and h == 0 else h, ("a", "b"), settings=4)
    found = between_data(table).set_index(["row", "column"])
    assert found.loc[("a", "b"), "n"] == 3
    assert found.loc[("a", "a"), "n"] == 4


def test_one_data_set_or_two_settings_are_too_few(make_table):
    with pytest.raises(NotInStudyError, match="one data set"):
        between_data(make_table(lambda d, h, s, m: h))
    with pytest.raises(NotInStudyError, match="fewer than three settings"):
        between_data(make_table(lambda d, h, s, m: h, ("a", "b"), settings=2))
