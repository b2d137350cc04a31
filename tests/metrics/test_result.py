import json
import math

import pytest

from unweave.metrics import Score


def test_a_score_is_a_number_where_one_is_needed():
    score = Score(0.25, metric="mig", higher_is_better=True)
    assert float(score) == 0.25
    assert f"{score:.3f}" == "0.250"
    assert f"{score:8.1%}" == "   25.0%"
    assert json.dumps(float(score)) == "0.25"


def test_a_score_prints_in_a_line():
    score = Score(0.961234567, {"matrix": [[0.1] * 100] * 100}, {"num_bins": 20}, metric="mig")
    assert repr(score) == str(score) == f"{score}" == "mig = 0.961235"
    assert repr(Score(math.nan)) == "score = nan"
    assert repr(Score(0.5, {"interval": (0.41234, 1.02)}, metric="mcc")) == "mcc = 0.5 (95 %: 0.4123 to 1.02)"


def test_scores_are_equal_by_value_details_and_params():
    assert Score(0.5, {"a": 1}, metric="mig") == Score(0.5, {"a": 1})
    assert Score(0.5) != Score(0.6)
    with pytest.raises(AttributeError):
        Score(0.5).value = 1.0  # type: ignore[misc]
