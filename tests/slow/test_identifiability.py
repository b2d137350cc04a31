"""What is stored of identifiability comes again: the two comparisons that hold there, on two of its data sets.

Ten runs, a minute on one core. Run by ``make test-slow``; claim (l) in docs/results.md.
"""

import json

import numpy as np
import pytest

from unweave.analyses.paper_claims.identifiability import ENOUGH, FEW, RANK, RUNS, SOURCES
from unweave.study import load_results

SEEDS = range(2)

pytestmark = pytest.mark.slow


def test_a_prior_given_enough_segments_finds_the_sources(benchmark):
    run = benchmark("identifiability").run
    found = {kind: [] for kind in RUNS}
    for kind in RUNS:
        for seed in SEEDS:
            rows = run(*kind, seed)
            scores = {row["metric"]: row["value"] for row in rows}
            print(json.dumps({"method": kind[0], "segments": kind[1], "seed": seed} | scores), flush=True)
            found[kind].append(scores)
            assert rows[0]["run"] in set(load_results("stored:identifiability")["run"])

    def mean(metric, *kind):
        return np.mean([scores[metric] for scores in found[kind]])

    assert mean("mcc", "ivae", ENOUGH) > mean("mcc", "vae", ENOUGH) + 0.03
    assert mean("linear_r2", "ivae", ENOUGH) > mean("linear_r2", "ivae", FEW) + 0.02
    for method, segments in RUNS[1:]:
        assert mean(RANK, method, segments) == (1 if segments == FEW else 2 * SOURCES)
