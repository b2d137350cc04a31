"""The benchmarks import what there is: they are run by hand, so that a renamed function would go unnoticed."""

import sys
from pathlib import Path

import pytest

from unweave.analyses.paper_claims.identifiability import RANK, RUNS, identifiability_claims, simulated_data
from unweave.study import load_results
from unweave.study.results import COLUMNS
from unweave.study.stored import TITLE, metadata_of

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_benchmark_can_be_imported(name, benchmark):
    assert benchmark(name).__doc__


@pytest.fixture
def tiny(benchmark, monkeypatch):
    """The script of identifiability, with hardly any training."""
    module = benchmark("identifiability")
    for name, value in {"POINTS": 200, "STEPS": 3, "SEEDS": range(2)}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(
        "torch.set_num_threads", lambda number: None
    )  # it would hold for all tests after this one
    return module


def test_identifiability_is_measured_and_written(tiny, tmp_path, monkeypatch):
    path = tmp_path / "mine.parquet"
    monkeypatch.setattr(sys, "argv", ["identifiability.py", str(path)])
    tiny.main()
    table = load_results(path)
    assert list(table.columns) == list(COLUMNS)
    assert metadata_of(path, TITLE) == tiny.TITLE
    assert table["run"].nunique() == 2 * len(RUNS)
    kinds = table[["method", "data", "seed"]].drop_duplicates()
    expected = {(method, simulated_data(segments), seed) for method, segments in RUNS for seed in (0, 1)}
    assert set(kinds.itertuples(index=False, name=None)) == expected
    assert set(table["metric"]) == {"mcc", "linear_r2", RANK}
    assert table.loc[table["method"] == "vae", "metric"].nunique() == 2
    assert not table["value"].isna().any()
    assert {claim.n for claim in identifiability_claims(table)[:6]} == {"4 runs, 2 seeds"}


def test_a_run_of_identifiability_is_repeated_exactly(tiny):
    first, again = ([row["value"] for row in tiny.run("ivae", 2, 5)] for _ in range(2))
    assert first == again
    assert tiny.run("ivae", 2, 5)[0]["run"] != tiny.run("ivae", 2, 6)[0]["run"]


def test_identifiability_asks_for_a_file_before_it_trains(tiny, tmp_path, monkeypatch):
    from unweave.errors import ArgumentError

    monkeypatch.setattr(sys, "argv", ["identifiability.py", str(tmp_path)])
    with pytest.raises(ArgumentError, match="is a folder"):
        tiny.main()
