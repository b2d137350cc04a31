"""Do labels identify the sources? VAE, iVAE and IDVAE on simulated sources: the stored results of claim (l).

    python benchmarks/identifiability.py [FILE]

Two sources, whose means and variances depend on a segment, seen through two layers (`uw.data.simulate_sources`): VAE on
20 segments, iVAE on 2, 5 and 20, and IDVAE on 20, each on eight data sets. Codes are a function of x alone (the encoder
ignores u), so that no label of a point leaks into its code. Networks are small and runs are short: 40 runs, about
five minutes on one core, written to studies/results/identifiability.parquet. The seed of a run is that of its data set
and of its training. `unweave study claims stored:identifiability` judges them.

The setting was chosen among several. With variances alone to tell segments apart, or an encoder that sees u, runs of
iVAE this short were hardly better than VAE. IDVAE, whose labels must have a scale, is given where the means of each
segment lie: with segments for labels its second VAE falls back to N(0, I), as a decoder of categories that ignores z is
as good a model of them as any.
"""

import hashlib
import json
import sys
import time
from pathlib import Path
from unittest.mock import patch

import torch

import unweave as uw
from unweave.analyses.paper_claims.identifiability import METRICS, RANK, RUNS, SOURCES, simulated_data
from unweave.evaluation.identifiability import conditional_prior_rank
from unweave.files import check_can_write
from unweave.networks import MLP
from unweave.study.results import as_table
from unweave.study.stored import stored_folder
from unweave.study.storing import write_stored

FILE = stored_folder() / "identifiability.parquet"
TITLE = "VAE, iVAE and IDVAE on simulated sources (benchmarks/identifiability.py)"
SEEDS = range(8)
POINTS, STEPS = 10_000, 3_000
SOURCES_SETTING = {"num_layers": 2, "means": (-2, 2), "modulation": (0.01, 4)}
TRAINING = {"batch_size": 128, "learning_rate": 2e-3}
HIDDEN = (50, 50)


class Encoder(torch.nn.Module):
    """q(z|x), for methods with and without labels."""

    def __init__(self):
        super().__init__()
        self.network = MLP(SOURCES, HIDDEN, 2 * SOURCES, "leaky_relu")

    def forward(self, x, u=None):
        return self.network(x).chunk(2, 1)


def labels(name, simulated):
    """The segment; for IDVAE where the segment's means lie between the extremes."""
    if name == "vae":
        return {}
    if name == "idvae":
        low, high = simulated.means.min(0), simulated.means.max(0)
        return {"labels": {"array": ((simulated.means - low) / (high - low))[simulated.segments]}}
    return {"labels": {"encoding": "one_hot"}}


def run(name, segments, seed):
    """Train a method on the data set of a seed: the rows of the results table."""
    simulated = uw.data.simulate_sources(SOURCES, segments, POINTS // segments, **SOURCES_SETTING, seed=seed)
    method = trained(name, simulated, seed)
    with torch.no_grad():
        codes = method.encoder(torch.from_numpy(simulated.observations).float())[0].numpy()
    points = {"train_points": len(codes), "data_rows": len(codes)}
    rows = [
        points | measured(metric, lambda metric: uw.metrics.score(metric, codes, simulated.sources).value)
        for metric in METRICS
    ]
    if name != "vae":
        rows.append(measured(RANK, lambda _: conditional_prior_rank(method, simulated.dataset).rank))
    return [columns(name, segments, seed) | row for row in rows]


def measured(metric, measure):
    """A score, and how long it took."""
    started = time.perf_counter()
    value = measure(metric)
    return {"metric": metric, "value": value, "seconds": round(time.perf_counter() - started, 2)}


def trained(name, simulated, seed):
    """The method after its training."""
    torch.manual_seed(seed)  # of the networks, which are our own
    with patch("unweave.methods.vae.conditional_prior.HIDDEN", HIDDEN):  # the paper's prior is 1,000 wide
        method = uw.methods.create(
            name,
            simulated.dataset,
            latent_size=SOURCES,
            reconstruction="gaussian_learned",
            encoder=Encoder(),
            decoder=MLP(SOURCES, HIDDEN, SOURCES, "leaky_relu"),
            **labels(name, simulated),
        )
    uw.train(method, simulated.dataset, STEPS, seed=seed, pictures=False, **TRAINING)
    return method


def columns(name, segments, seed):
    """What the results table says of a run."""
    info = uw.methods.describe(name)
    settings = {
        "sources": SOURCES_SETTING,
        "hidden": HIDDEN,
        "labels": {"vae": None, "ivae": "segment", "idvae": "means of the segment"}[name],
        "reconstruction": "gaussian_learned",
        **TRAINING,
    }
    about = {
        "data": simulated_data(segments),
        "method": name,
        "strength_name": info.strength,
        "strength": info.hyperparameters.get(info.strength, float("nan")),
        "seed": seed,
        "correlation": 0.0,
        "latent_size": SOURCES,
        "steps": STEPS,
        "settings": json.dumps(settings, sort_keys=True),
    }
    identity = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:20]
    return {"run": identity, **about, "representation": "mean", "protocol": "paper"}


def main():
    path = check_can_write(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE, "FILE")
    torch.set_num_threads(1)
    rows = []
    for seed in SEEDS:
        for name, segments in RUNS:
            rows += run(name, segments, seed)
            print(f"{name}, {segments} segments, seed {seed}: {len(rows)} scores", flush=True)
    write_stored(path, as_table(rows), title=TITLE)
    print(path)


if __name__ == "__main__":
    main()
