"""The tables of docs/d-separation.md come out of the code exactly."""

import re
from pathlib import Path

from unweave.analyses.d_separation import GRAPHS, d_separated, masked_pictures

PAGE = (Path(__file__).parents[2] / "docs" / "d-separation.md").read_text(encoding="utf-8")


def test_the_probabilities_are_those_of_the_model():
    model = masked_pictures()
    expected = []
    for c in (1, 2, 3):
        for z in (0, 1):
            row = [c, z]
            for given in ({"x": 4}, {"x": 4, "y": 1}):
                apart = model.table(["c"], given)[(c,)] * model.table(["z"], given)[(z,)]
                row += [model.table(["c", "z"], given)[(c, z)], apart]
            expected.append("| " + " | ".join(map(str, row)) + " |")
    assert re.findall(r"^\| \d \| \d \|.*\|$", PAGE, re.MULTILINE) == expected


def test_the_statements_are_those_of_the_algorithm():
    rows = re.findall(r"^\| (\S*VAE)[^|]*\|[^|]*\| ([xy, ]+) \| (not )?separated", PAGE, re.MULTILINE)
    assert len(rows) == 3
    for graph, observed, negated in rows:
        assert d_separated(GRAPHS[graph], "c", "z", observed.split(", ")) is (not negated)
