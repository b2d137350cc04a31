import json
import shutil
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

from unweave.analyses import main_runs
from unweave.analyses.scores import seed_medians
from unweave.analyses.variants import with_variant
from unweave.methods import METHODS, Method, Player, Posterior, Terms, register_method
from unweave.metrics import udr
from unweave.study.collecting import collect
from unweave.study.folder import StudyFolder
from unweave.study.results import COLUMNS, load_results
from unweave.study.scores import UDR, read_codes
from unweave.study.worker import work


@pytest.fixture
def copied(finished, tmp_path):
    """The finished study in a folder that may be changed."""
    root = tmp_path / "copied"
    shutil.copytree(finished.root, root)
    return StudyFolder(root, finished.name, finished.plan)


def test_the_table_has_its_columns_and_types(finished):
    table = collect(finished).table
    assert list(table.columns) == list(COLUMNS)
    for name, kind in COLUMNS.items():
        assert table[name].dtype == pd.Series([], dtype=kind).dtype, name
    pd.testing.assert_frame_equal(load_results(finished.path), table)


def test_a_row_for_each_run_metric_representation_and_protocol(finished):
    table = collect(finished).table
    assert not table.duplicated(["run", "metric", "representation", "labels", "protocol"]).any()
    of_each = {
        ("gaussian_total_correlation", "mean"),
        ("gaussian_total_correlation", "sampled"),
        ("mig", "mean"),
        ("modularity", "mean"),
        ("udr", "mean"),
        *((f"unsupervised{part}", "sampled") for part in ("", ".reconstruction", ".kl", ".elbo")),
        *((f"unsupervised{part}", "mean") for part in (".l1", ".l2")),
    }
    for _, rows in table.groupby("run"):
        assert of_each == {(m, r) for m, r in zip(rows["metric"], rows["representation"], strict=True)}
    assert set(table["run"]) == {job.identity for job in finished.jobs}
    assert set(table["protocol"]) == {"paper"}
    assert np.isfinite(table["value"]).all()
    assert (table["seconds"] >= 0).all()


def test_what_a_row_says_of_its_run(finished):
    table = collect(finished).table
    rows = table.drop_duplicates("run").set_index("run")
    for job in finished.jobs:
        row = rows.loc[job.identity]
        assert (row["method"], row["seed"], row["steps"], row["latent_size"]) == (job.method, job.seed, 3, 3)
        assert row["strength_name"] == ("beta" if job.method == "beta_vae" else "")
        assert row["strength"] == job.strength or (np.isnan(row["strength"]) and job.method == "vae")
        settings = json.loads(row["settings"])
        assert settings["architecture"] == "mlp"
        assert "beta" not in settings
        assert "steps" not in settings


def test_udr_is_of_the_runs_that_differ_in_their_seed_only(finished):
    table = collect(finished).table
    found = table[table["metric"] == "udr"].set_index("run")["value"]
    assert len(found) == 6
    unit = next(unit for unit in finished.units if unit.metric == UDR)
    for strength in (1, 4):
        jobs = [job for job in finished.jobs if job.strength == strength]
        assert len(jobs) == 2
        kept = [read_codes(finished.run(job.identity) / "scores" / unit.file) for job in jobs]
        assert kept[0][0].shape == (20, 3)
        score = udr.compute([codes for codes, _ in kept], kl_list=[kl for _, kl in kept], method="spearman")
        assert [found[job.identity] for job in jobs] == score.details["per_model"].tolist()


def test_unfinished_runs_are_left_out(copied):
    (copied.run(copied.jobs[0].identity) / copied.done_file).unlink()
    copied.fail(copied.jobs[0], "ValueError: x", "trace")
    results = collect(copied)
    assert results.table["run"].nunique() == 5
    partner = copied.jobs[1].identity  # no other seed is left to agree with
    assert "udr" not in set(results.table[results.table["run"] == partner]["metric"])
    assert results.failures[0]["error"] == "ValueError: x"
    assert results.failures[0]["strength"] == 1.0
    assert results.runs == copied.runs
    assert results.spec["planned"] == 6
    for job in copied.jobs[1:]:
        (copied.run(job.identity) / copied.done_file).unlink()
    empty = collect(copied).table
    assert len(empty) == 0
    assert list(empty.columns) == list(COLUMNS)


def test_agreement_that_is_known_is_not_computed_again(copied, monkeypatch):
    first = collect(copied).table
    monkeypatch.setattr("unweave.study.collecting._agreement", lambda *_, **__: pytest.fail("computed again"))
    pd.testing.assert_frame_equal(collect(copied).table, first)


def test_two_kinds_of_agreement_are_both_remembered(opened, tiny, monkeypatch):

    tiny["runs"]["product"][1] = {"method": "vae"}
    tiny["evaluation"]["metrics"] = [
        {"metric": "udr", "method": "spearman", "num_images": 20},
        {"metric": "udr", "as": "udr_lasso", "method": "lasso", "num_images": 20},
    ]
    del tiny["evaluation"]["params"]
    folder = opened(tiny)
    work(folder, "cpu")
    first = collect(folder).table
    assert first.groupby("metric")["run"].nunique().to_dict() == {"udr": 2, "udr_lasso": 2}
    monkeypatch.setattr("unweave.study.collecting._agreement", lambda *_, **__: pytest.fail("computed again"))
    pd.testing.assert_frame_equal(collect(folder).table, first)


def test_runs_with_different_schedules_of_the_strength_are_different_settings(opened, tiny, images):
    schedules = [{"start": 0, "end": end, "steps": 2} for end in (4, 8)]
    tiny["runs"] = {"data": str(images), "method": "beta_vae", "beta": [1.0, *schedules], "seed": 0}
    folder = opened(tiny)
    work(folder, "cpu")
    table = collect(folder).table
    runs = with_variant(table).drop_duplicates("run")
    assert runs["strength"].isna().tolist() == [False, True, True]
    assert [json.loads(text).get("beta") for text in runs["settings"]] == [None, *schedules]
    assert runs["variant"].nunique() == 3
    assert set(seed_medians(table)["n"]) == {1}


def test_settings_that_a_method_does_not_take_are_empty(opened, tiny, images):
    @register_method
    class Pixels(Method):
        """Two pixels are the code."""

        parts: ClassVar = {"z": slice(0, 2)}
        noise_correlation = 0.0

        def __init__(self, image_shape, *, scale: float = 1.0):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(scale))

        def begin(self, batch, step, generator):
            return self.scale.square()

        def players(self):
            return [Player("model", [self.scale], lambda loss: Terms.of(size=(loss, 1.0)))]

        def encode(self, images):
            mean = images.flatten(1)[:, [0, 20]] * self.scale
            return Posterior(mean, torch.full_like(mean, -torch.inf))

    tiny["evaluation"] = {"metrics": ["mig"], "num_train": 60, "num_test": 30}
    tiny["runs"] = {"data": str(images), "method": ["vae", "Pixels"], "seed": 0}
    try:
        folder = opened(tiny)
        work(folder, "cpu")
    finally:
        METHODS.unregister("Pixels")
    table = collect(folder).table.set_index("method")  # of a method that is not known any more
    assert table["latent_size"].dtype == "Int64"
    assert table.loc["vae", "latent_size"] == 3
    assert pd.isna(table.loc["Pixels", "latent_size"])
    assert "architecture" in json.loads(table.loc["vae", "settings"])
    expected = {"batch_size": 4, "image_size": None, "learning_rate": 1e-4, "precision": "32-true"}
    assert json.loads(table.loc["Pixels", "settings"]) == {**expected, "split": None, "labels_csv": None}
    pd.testing.assert_frame_equal(load_results(folder.path).set_index("method"), table)
    assert set(main_runs(table.reset_index())["method"]) == {"vae", "Pixels"}


def test_both_representations_and_labels(opened, tiny):
    from unweave.study.perform import perform

    tiny["evaluation"]["metrics"] = ["mig", {"metric": "mig", "as": "mig_five", "num_bins": 5}]
    tiny["evaluation"]["representations"] = ["mean", "sampled"]
    del tiny["evaluation"]["params"]
    folder = opened(tiny)
    perform(folder, folder.jobs[0], "cpu")
    table = collect(folder).table
    found = {
        (m, r): v for m, r, v in zip(table["metric"], table["representation"], table["value"], strict=True)
    }
    assert set(found) == {(m, r) for m in ("mig", "mig_five") for r in ("mean", "sampled")}
    assert len(set(found.values())) == 4


def test_parts_that_are_not_defined_are_left_out(finished, tmp_path):
    root = shutil.copytree(finished.root, tmp_path / "copy")
    copied = StudyFolder(root, finished.name, finished.plan)
    path = copied.run(copied.jobs[0].identity) / copied.done_file
    told = json.loads(path.read_text())
    del told["sha256"]
    told["rows"] += [
        ["mig.part", "mean", "", "", float("nan"), "dlib", 40, 20, 60, 0.0],
        ["mig.other", "mean", "", "", 0.5, "dlib", 40, 20, 60, 0.0],
    ]
    path.write_text(json.dumps(told))
    table = collect(copied).table
    assert "mig.part" not in set(table["metric"])
    assert "mig.other" in set(table["metric"])


def test_scores_of_an_older_version_are_read(finished, tmp_path):
    root = shutil.copytree(finished.root, tmp_path / "copy")
    copied = StudyFolder(root, finished.name, finished.plan)
    path = copied.run(copied.jobs[0].identity) / copied.done_file
    content = json.loads(path.read_text())
    del content["columns"], content["sha256"]
    content["rows"] = [["mig", "mean_u_given", 0.9, "dlib", 2.0], ["mig", "mean_u_unknown", 0.1, "dlib", 3.0]]
    path.write_text(json.dumps(content))
    table = collect(copied).table
    rows = table[table["run"] == copied.jobs[0].identity].query("metric == 'mig'")
    kept = rows[["representation", "labels", "value", "protocol", "seconds"]].to_numpy().tolist()
    assert kept == [["mean", "given", 0.9, "dlib", 2.0], ["mean", "unknown", 0.1, "dlib", 3.0]]
