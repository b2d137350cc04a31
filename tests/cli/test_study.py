import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from unweave.cli import main
from unweave.study.collecting import collect
from unweave.study.folder import open_study
from unweave.study.source import dump, parse
from unweave.study.spec import known_studies
from unweave.study.worker import work

LOCAL = ["--processes", "2", "--threads", "1", "--device", "cpu", "--no-report"]


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        return int(caught.value.code or 0), *capsys.readouterr()

    return call


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """The file of a study of four runs on 64 images of 8 x 8 pixels."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "noise").mkdir()
    for i, image in enumerate(np.random.default_rng(0).integers(0, 256, (64, 8, 8), np.uint8)):
        Image.fromarray(image).save(folder / "noise" / f"{i:02}.png")
    values = {
        "title": "A tiny study",
        "training": {"steps": 3, "batch_size": 4, "architecture": "mlp", "latent_size": 3},
        "runs": {"data": str(folder / "noise"), "method": "beta_vae", "beta": [1, 4], "seed": {"range": 2}},
        "evaluation": {
            "metrics": ["gaussian_total_correlation", {"metric": "unsupervised", "num_images": 20}],
            "num_train": 60,
            "num_test": 30,
        },
    }
    (folder / "noise" / "factors.csv").write_text(
        "\n".join(["file,n", *(f"{i:02}.png,{i}" for i in range(64))])
    )
    path = folder / "tiny.yaml"
    path.write_text(dump(values))
    return path


@pytest.fixture(scope="session")
def reference(study, tmp_path_factory):
    """The folder of the study with all runs done, undisturbed. Not to be changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.mktemp("data")))
        return finish(study, tmp_path_factory.mktemp("reference"))


@pytest.fixture
def done(reference, tmp_path):
    """The same, to be changed."""
    return shutil.copytree(reference, tmp_path / "done")


def finish(file, root, **overrides):
    """Do a study in this process, undisturbed."""
    from unweave.study.driver import prepare
    from unweave.study.driver import run as run_study
    from unweave.study.spec import load_study

    class Here:
        def run(self, folder, watch):
            work(folder, "cpu")

    folder = prepare(*load_study(file, overrides), root)
    run_study(folder, Here())
    return root


def start(*arguments):
    command = [sys.executable, "-m", "unweave", "study", *map(str, arguments)]
    # A session of its own, so that a signal is for the command alone.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def table(root, name="tiny"):
    found = collect(open_study(root, name)).table.drop(columns="seconds")
    assert not found.duplicated(["run", "metric", "representation", "labels", "protocol"]).any()
    return found


def changed(study, tmp_path, **changes):
    values = parse(study.read_text(), "").values
    for name, value in changes.items():
        part, _, field = name.partition("__")
        values[part][field] = value
    path = tmp_path / "changed.yaml"
    path.write_text(dump(values))
    return path


def test_list(run):
    code, printed, _ = run("study", "list")
    assert code == 0
    rows = {line.split("\t")[0]: line.split("\t")[1] for line in printed.splitlines()}
    assert set(rows) >= set(known_studies())
    assert rows["locatello"] == "12,600"
    assert "identifiability\t\t40\tVAE, iVAE and IDVAE on simulated sources" in printed


def test_the_strengths_of_a_plan_are_in_words(run, tmp_path):
    path = tmp_path / "scheduled.yaml"
    path.write_text(
        "title: scheduled\ntraining: {steps: 3}\nevaluation: {metrics: [unsupervised]}\nruns:\n  product:\n"
        "    - {data: pendulum, reconstruction: mse, seed: 0}\n"
        "    - chain: [{method: vae}, {method: beta_vae, beta: [4, {start: 0, end: 8, steps: 2}]}]\n"
    )
    options = ["--no-measure", "--runs", "--format", "json", "-o", tmp_path / "out"]
    code, printed, _ = run("study", "plan", path, *options)
    assert code == 0
    assert [each["strength"] for each in json.loads(printed)] == ["", "4", "0→8 in 2 steps"]


def test_plan_does_nothing(run, study, tmp_path):
    code, printed, _ = run("study", "plan", study, "--no-measure", "--runs", "-o", tmp_path / "out")
    assert code == 0
    assert len([line for line in printed.splitlines() if "beta_vae" in line and "noise" in line]) >= 4
    assert not (tmp_path / "out").exists()


def test_a_list_of_runs_for_programs_is_one_document(run, study, tmp_path):
    options = ["--no-measure", "--runs", "--format", "json", "-o", tmp_path / "out"]
    code, printed, _ = run("study", "plan", study, *options)
    assert code == 0
    assert {row["method"] for row in json.loads(printed)} >= {"beta_vae"}


def test_all_missing_data_sets_are_named_at_once(run, study, tmp_path):
    several = ["--set", "data=[shapes3d,cars3d,dsprites]", "-o", tmp_path / "out"]
    code, printed, _ = run("study", "plan", study, "--no-measure", *several)
    assert code == 0
    assert "shapes3d, cars3d: unweave data get shapes3d cars3d" in printed
    code, _, errors = run("study", "run", study, "--set", "data=[shapes3d,cars3d]", "-o", tmp_path / "out")
    assert code == 1
    assert "unweave data get shapes3d" in errors
    assert "unweave data get cars3d" in errors


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["run", "locatelo"], 2, "did you mean 'locatello'"),
        (["run", "nowhere.yaml"], 1, "nowhere.yaml: there is no such study file"),
        (["run", "STUDY", "--set", "steps"], 2, "needs NAME=VALUE"),
        (["run", "STUDY", "--set", "steps=[1"], 2, "the value cannot be read"),
        (["run", "STUDY", "--set", "beta=1", "--set", "beta=2"], 2, "beta is given twice"),
        (["run", "STUDY", "--set", "training.steps=-1"], 1, "--set training.steps: training.steps = -1: "),
        (["run", "STUDY", "--set", "runs.product.0.data=1"], 2, "the study has nothing at runs.product.0"),
        (["run", "STUDY", "--set", "beta=[1,-4]"], 1, "beta = -4: needs a number >= 0"),
        (["run", "STUDY", "--set", "stepps=5"], 1, "--set stepps: field = 'stepps'"),
        (["run", "STUDY", "--executor", "abacus"], 2, "abacus"),
        (["run", "STUDY", "--processes", "0"], 2, "--processes"),
        (["run", "STUDY", "--processes", "1", "--device", "abacus"], 2, "device = 'abacus'"),
        (["run", "STUDY", "--set", "data=shapes3d"], 1, "Or leave it out: --set data=[…]"),
        (["run", "STUDY", "--set", "evaluation.metrics=[migg]"], 1, "metric = 'migg': did you mean 'mig'?"),
        (["plan", "STUDY", "--set", "evaluation.metrics=[migg]"], 1, "metric = 'migg': did you mean 'mig'?"),
        (
            ["run", "STUDY", "--set", "evaluation.metrics=[{metric: mig, bins: 3}]"],
            1,
            "--set evaluation.metrics: parameter of mig = 'bins': did you mean 'num_bins'?",
        ),
        (
            ["run", "STUDY", "--set", "evaluation.metrics=[{metric: dci, learner: abacus}]"],
            1,
            "dci: learner = 'abacus'",
        ),
        (
            ["run", "STUDY", "--set", "evaluation.metrics=[{metric: beta_vae, batch_size: 0}]"],
            1,
            "beta_vae: batch_size = 0",
        ),
        (
            ["run", "STUDY", "--set", "evaluation.metrics=[attribute_classification]"],
            1,
            "metrics = 'attribute_classification': none of them applies",
        ),
        (
            ["run", "STUDY", "--set", "training.architecture=convv"],
            1,
            "architecture = 'convv': did you mean 'conv'",
        ),
        (["run", "STUDY", "--set", "method=factr_vae"], 1, "did you mean 'factor_vae'"),
        (["status", "STUDY"], 1, "no study was started there"),
        (["status", "nothing"], 1, "no study was started there"),
        (["status", "nothing", "--watch"], 1, "no study was started there"),
        (["results", "STUDY"], 1, "no study was started there"),
        (["report", "STUDY"], 1, "no study was started there"),
        (["resume", "nothing"], 1, "there is no such study file"),
        (["run"], 2, "STUDY"),
    ],
)
def test_mistakes(run, study, tmp_path, arguments, code, told):
    root = tmp_path / "out"
    arguments = [str(study) if word == "STUDY" else word for word in arguments]
    place = ["-o", str(root)] if len(arguments) > 1 else []
    found, _, error = run("study", *arguments, *place)
    assert found == code
    assert told in error
    assert "Traceback" not in error
    assert "unexpected" not in error
    assert not (root / "runs").exists()  # nothing was started


def test_a_mistake_in_a_file_is_told_with_its_line(run, study, tmp_path):
    path = changed(study, tmp_path, evaluation__num_train=1)
    line = path.read_text().splitlines().index("  num_train: 1") + 1
    code, _, error = run("study", "run", path, "-o", tmp_path / "out")
    assert code == 1
    assert f"changed.yaml, line {line}: evaluation.num_train = 1: Input should be greater" in error


def test_results(run, study, reference, tmp_path):
    code, printed, _ = run("study", "results", study, "-o", reference)
    assert code == 0
    assert "gaussian_total_correlation" in printed
    sql = "select strength, count(*) as n from results where metric = 'unsupervised' group by strength order by 1"
    code, printed, _ = run("study", "results", "tiny", "-o", reference, "--sql", sql)
    assert code == 0
    assert [line.split() for line in printed.splitlines() if line.split()[0] != "STRENGTH"] == [
        ["1", "2"],
        ["4", "2"],
    ]

    target = tmp_path / "out" / "table.csv"
    assert run("study", "results", "tiny", "-o", reference, "--csv", target)[0] == 0
    with open(target) as file:
        rows = list(csv.DictReader(file))
    expected = table(reference)
    assert [float(row["value"]) for row in rows] == expected["value"].tolist()
    assert {row["run"] for row in rows} == set(expected["run"])


def test_results_without_sql_are_medians_over_seeds_with_their_values(run, reference, monkeypatch):
    found = collect(open_study(reference, "tiny"))
    parts = [
        found.table.assign(
            settings=f'{{"labels": {{"labelled": {part}}}}}',
            run=found.table["run"] + part,
            value=found.table["value"] + float(part),
        )
        for part in ("100", "1000")
    ]
    both = replace(found, table=pd.concat(parts, ignore_index=True))
    monkeypatch.setattr("unweave.study.collecting.collect", lambda folder: both)
    code, printed, _ = run("study", "results", "tiny", "-o", reference)
    assert code == 0
    lines = [line.replace(",", " ").split() for line in printed.splitlines()]
    scores = found.table.query("metric == 'unsupervised' and strength == 4.0")["value"]
    for part in ("100", "1000"):
        line = next(line for line in lines if line[2:6] == ["4", "labelled", part, "unsupervised"])
        assert float(line[7]) == pytest.approx(scores.median() + float(part), rel=1e-4)
        assert line[8] == "2"
        values = sorted(float(cell) for cell in line[9:])  # of fewer than five seeds there is no interval
        assert values == pytest.approx(sorted(scores + float(part)), rel=2e-3)


@pytest.mark.parametrize(
    ("sql", "warned"),
    [
        ("select method, median(value) from results group by method", True),
        ("select method, labels, median(value) from results group by all", False),
        ("select method, representation, median(value) from results group by all", True),
        ("select median(value) from results where Labels != 'given'", False),
        ("from results", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("mode", ["given", "unknown"])
def test_sql_that_mixes_scores_from_true_labels_is_warned_of(run, reference, monkeypatch, sql, warned, mode):
    found = collect(open_study(reference, "tiny"))
    labelled = found.table.assign(labels=mode)
    both = replace(found, table=pd.concat([found.table, labelled], ignore_index=True))
    monkeypatch.setattr("unweave.study.collecting.collect", lambda folder: both)
    code, printed, error = run("study", "results", "tiny", "-o", reference, *(("--sql", sql) if sql else ()))
    assert code == 0
    assert printed
    assert ("warning: the answer may mix in scores with u given" in error) == (warned and mode == "given")
    assert "warning" not in printed


@pytest.mark.parametrize(
    "sql", ["selec 1", "select x from results", "select * from '/etc/passwd'", "copy results to '/tmp/x.csv'"]
)
def test_bad_sql(run, reference, sql):
    code, printed, error = run("study", "results", "tiny", "-o", reference, "--sql", sql)
    assert code == 2
    assert printed == ""
    assert "Error" in error
    assert "Traceback" not in error


def test_status(run, study, done):
    folder = open_study(done, "tiny")
    (folder.run(folder.jobs[0].identity) / folder.done_file).unlink()
    folder.fail(folder.jobs[0], "ValueError: purple", "Traceback …")
    (folder.run(folder.jobs[1].identity) / folder.done_file).unlink()
    code, printed, _ = run("study", "status", study, "-o", done)
    assert code == 0
    counts = [line.split("\t")[2:] for line in printed.splitlines() if line.startswith("all")]
    assert counts == [["2", "0", "1", "1"]]
    assert "ValueError: purple" in printed
    code, printed, _ = run("study", "status", "tiny", "-o", done, "--json")
    found = json.loads(printed)
    assert (found["done"], found["failed"], found["waiting"], found["running"]) == (2, 1, 1, 0)
    assert found["failures"][0]["error"] == "ValueError: purple"
    assert found["workers"] == []


def test_a_failed_run_is_told_and_resume_tries_it_again(run, study, done):
    expected = table(done)
    folder = open_study(done, "tiny")
    bad = folder.jobs[2]
    (folder.run(bad.identity) / folder.done_file).unlink()
    folder.fail(bad, "ValueError: purple", "")
    code, printed, error = run("study", "run", study, "-o", done, *LOCAL)
    assert code == 1
    assert "3 of 4 runs are done" in printed
    assert "1 runs failed" in error
    assert "ValueError: purple" in error
    assert "unweave study resume" in error

    code, printed, error = run("study", "resume", "tiny", "-o", done, *LOCAL)
    assert code == 0, error
    assert "1 failed runs are tried again" in printed
    assert "4 of 4 runs are done" in printed
    assert table(done).equals(expected)
    assert run("study", "run", study, "-o", done, *LOCAL)[0] == 0  # nothing is left to do


def test_two_commands_at_once_share_the_work(study, reference, tmp_path):
    root = tmp_path / "shared"
    both = [start("run", study, "-o", root, *LOCAL) for _ in range(2)]
    for command in both:
        printed, error = command.communicate(timeout=600)
        assert command.returncode == 0, error
        assert "4 of 4 runs are done" in printed
    assert table(root).equals(table(reference))
    folder = open_study(root, "tiny")
    assert folder.failures() == []
    assert sorted(path.name for path in folder.runs.iterdir()) == sorted(job.identity for job in folder.jobs)
    assert list((root / "state").glob("*.attempts.json")) == []
    assert list(folder.workers.glob("*.json")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_goes_on_to_the_same_results(study, tmp_path, number):
    """Long enough that it is stopped while it trains."""
    path = changed(study, tmp_path, training__steps=150, runs__seed=0, training__batch_size=2)
    root = tmp_path / "out"
    command = start("run", path, "-o", root, *LOCAL)
    workers = root / "changed" / "workers"
    end = time.monotonic() + 300
    while not [told for told in read(workers) if told["part"] == "training"]:
        assert time.monotonic() < end
        assert command.poll() is None, command.communicate()
        time.sleep(0.02)
    pids = [told["pid"] for told in read(workers)]
    command.send_signal(number)
    printed, error = command.communicate(timeout=100)
    assert command.returncode == 130
    assert "interrupted" in error
    assert "Traceback" not in error
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # noqa: PTH110
    folder = open_study(root, "changed")
    assert folder.pending()
    assert list(folder.runs.glob("*/state.safetensors"))  # a checkpoint to go on from
    assert folder.failures() == []
    assert list(workers.glob("*.json")) == []

    again = start("run", path, "-o", root, *LOCAL)
    printed, error = again.communicate(timeout=600)
    assert again.returncode == 0, error
    assert "2 of 2 runs are done" in printed
    finish(path, tmp_path / "undisturbed")
    assert table(root, "changed").equals(table(tmp_path / "undisturbed", "changed"))


def read(workers):
    found = []
    for path in workers.glob("[!.]*.json"):
        try:
            found.append(json.loads(path.read_text()))
        except (OSError, ValueError):
            continue
    return found


# --- stored results and claims -------------------------------------------------------------------


@pytest.fixture
def stored_here(tmp_path, monkeypatch):
    from unweave.study import stored, storing

    monkeypatch.setattr(stored, "stored_folder", lambda: tmp_path / "stored")
    monkeypatch.setattr(storing, "stored_folder", lambda: tmp_path / "stored")
    return tmp_path / "stored"


def test_a_study_is_stored_and_not_done_again(run, study, done, stored_here, tmp_path):
    code, out, _ = run("study", "store", study, "-o", done, "--to", stored_here)
    assert code == 0
    assert "4 of 4 runs (4 new, 0 stored again, 0 kept)" in out
    code, out, _ = run("study", "plan", study, "-o", tmp_path / "new", "--no-measure", "--skip-stored")
    assert code == 0
    assert "the scores of 4 of 4 runs are stored; left out" in out
    code, out, _ = run("study", "run", study, "-o", tmp_path / "new", "--skip-stored", *LOCAL)
    assert code == 0
    assert "0 runs, 0 to do" in out
    assert not (tmp_path / "new" / "runs").exists()
    code, out, _ = run("study", "plan", study, "-o", tmp_path / "new", "--no-measure")
    assert "--skip-stored leaves them out" in out


def test_storing_needs_a_folder_with_runs(run, study, tmp_path):
    code, _, err = run("study", "store", study, "-o", tmp_path / "nowhere")
    assert code == 2
    assert "no study was run there" in err


def test_stored_results_are_read_reported_and_judged(run, tmp_path):
    sql = "select count(distinct run) as runs from results"
    code, out, _ = run("study", "results", "stored:yang-32", "--sql", sql, "--format", "json")
    assert code == 0
    assert json.loads(out)[0]["runs"] > 0
    code, _, err = run("study", "report", "stored:yang-32")
    assert code == 2
    assert "--to" in err
    code, out, err = run("study", "report", "stored:yang-32", "--to", tmp_path / "report")
    assert code == 0
    assert "without traversals" in err
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Claims of Yang et al." in page
    assert (tmp_path / "report" / "tables" / "claims-yang.csv").exists()
    code, _, err = run("study", "results", "stored:nothing")
    assert code == 2
    assert "yang-32" in err


def test_stored_results_of_no_study_are_reported_and_judged(run, tmp_path):
    code, out, _ = run("study", "claims", "stored:identifiability", "--format", "json")
    assert code == 0
    assert {row["claim"][:3] for row in json.loads(out)} == {"(l)"}
    code, _, err = run("study", "report", "stored:identifiability", "--to", tmp_path / "report")
    assert code == 0, err
    page = (tmp_path / "report" / "report.html").read_text()
    assert "VAE, iVAE and IDVAE on simulated sources" in page
    assert "Claims of Mita et al." in page


def test_claims_in_every_format(run, done):
    code, out, _ = run("study", "claims", "stored:yang-32", "--format", "json")
    assert code == 0
    rows = json.loads(out)
    assert {"claim", "paper", "measured", "n", "p", "verdict", "reason"} == rows[0].keys()
    assert {row["verdict"] for row in rows} <= {"holds", "does not hold", "not shown", "not tested"}
    code, out, _ = run("study", "claims", done / "tiny", "--paper", "locatello", "--format", "csv")
    assert code == 0
    assert next(csv.reader(out.splitlines()))[0] == "claim"
    code, _, err = run("study", "claims", "stored:yang-32", "--paper", "nobody")
    assert code == 2
    assert "locatello" in err
