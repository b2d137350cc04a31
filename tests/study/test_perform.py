import json
import os

import numpy as np
import pytest

from unweave import evaluation, load
from unweave.data.registry import load_described
from unweave.metrics import METRICS, register_metric
from unweave.study import perform as performing
from unweave.study.collecting import collect
from unweave.study.folder import ATTEMPTS, count_crash_of, open_study
from unweave.study.perform import perform
from unweave.study.planning import Job
from unweave.study.worker import work


class Killed(BaseException):
    """As far as the study can tell, the process is gone."""


def stop_at(part, share=0.0, error=KeyboardInterrupt):
    def tell(job, now, done):
        if now == part and done >= share:
            raise error

    return tell


def rows(folder, job):
    """The scores of a run, without the seconds that they took."""
    told = json.loads((folder.run(job.identity) / folder.done_file).read_text())
    return [row[:-1] for row in told["rows"]]


def scores(folder, job):
    return {path.name: path.stat().st_mtime_ns for path in (folder.run(job.identity) / "scores").iterdir()}


def test_a_run_leaves_what_is_needed_and_no_more(finished):
    for job in finished.jobs:
        place = finished.run(job.identity)
        assert {path.name for path in place.iterdir()} == {
            ".lock",
            "spec.yaml",
            "history.jsonl",
            "weights.safetensors",
            "job.json",
            "scores",
            finished.done_file,
        }
        assert len(scores(finished, job)) == len(finished.units)
        assert json.loads((place / "job.json").read_text()) == job.as_dict()
        assert not finished.attempts(job.identity).exists()


def test_codes_are_kept_on_request(opened, tiny):
    tiny["evaluation"]["keep_codes"] = True
    folder = opened(tiny)
    assert perform(folder, folder.jobs[0], "cpu") == "done"
    assert (folder.run(folder.jobs[0].identity) / "codes").is_dir()


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ("training", Killed),
        ("mig", KeyboardInterrupt),
        ("modularity", Killed),
        ("unsupervised", KeyboardInterrupt),
        ("udr", Killed),
    ],
)
def test_an_interrupted_run_goes_on_to_the_same_scores(opened, finished, monkeypatch, part, error):
    folder = opened()
    job = folder.jobs[0]
    with pytest.raises(error):
        perform(folder, job, "cpu", stop_at(part, error=error))
    assert not folder.is_done(job)
    weights = folder.run(job.identity) / "weights.safetensors"
    trained = weights.stat().st_mtime_ns if weights.exists() else None
    assert (trained is None) == (part == "training")
    kept = scores(folder, job) if part not in ("training", "mig") else {}

    asked = []
    evaluate = evaluation.evaluate
    monkeypatch.setattr(evaluation, "evaluate", lambda *a, **k: asked.extend(a[2]) or evaluate(*a, **k))
    assert perform(folder, job, "cpu") == "done"
    assert trained in (None, weights.stat().st_mtime_ns)
    assert scores(folder, job).items() >= kept.items()  # none was computed again
    assert not {name.partition("-")[0] for name in kept} & set(asked)
    assert rows(folder, job) == rows(finished, job)


def test_scores_are_the_same_bits_after_a_stop_between_training_and_measuring(opened, tiny, tmp_path):
    """The convolutional network has a fast form on the CPU; a loaded one must be in it, too."""
    tiny["training"] |= {"architecture": "conv", "image_size": 64, "steps": 2}
    tiny["evaluation"]["metrics"] = ["unsupervised"]
    one, two = opened(tiny), opened(tiny, tmp_path / "two")
    assert perform(one, one.jobs[0], "cpu") == "done"
    with pytest.raises(KeyboardInterrupt):
        perform(two, two.jobs[0], "cpu", stop_at("unsupervised"))
    assert perform(two, two.jobs[0], "cpu") == "done"
    assert rows(one, one.jobs[0]) == rows(two, two.jobs[0])


def test_what_killed_writers_left_is_cleared_away(opened):
    folder = opened()
    job = folder.jobs[0]
    place = folder.run(job.identity)
    place.mkdir(parents=True)
    first = place / f".spec-{'0' * 32}.yaml"  # all that there is of the run
    first.write_text("half")
    with pytest.raises(Killed):
        perform(folder, job, "cpu", stop_at("modularity", error=Killed))
    assert not first.exists()
    left = [place / f".state-{'a1' * 16}.safetensors", place / f"scores/.sap-mean-{'f' * 32}.json"]
    for path in left:
        path.write_text("half")
    assert perform(folder, job, "cpu") == "done"
    assert not any(path.exists() for path in left)


def test_a_failure_is_recorded_and_the_study_goes_on(opened, monkeypatch):
    folder = opened()
    train = performing.train

    def fail(method, *arguments, **settings):
        if settings["seed"] == 1 and method.spec.name == "vae":
            raise ValueError("the loss is purple")
        return train(method, *arguments, **settings)

    monkeypatch.setattr(performing, "train", fail)
    work(folder, "cpu")
    assert folder.pending() == []
    (told,) = folder.failures()
    assert told["error"] == "ValueError: the loss is purple"
    assert "Traceback" in told["trace"]
    assert "in fail" in told["trace"]
    assert (told["method"], told["seed"]) == ("vae", 1)
    assert sum(folder.is_done(job) for job in folder.jobs) == 5
    bad = next(job for job in folder.jobs if folder.has_failed(job))
    assert perform(folder, bad, "cpu") == "failed"  # not tried again by itself

    monkeypatch.setattr(performing, "train", train)
    assert folder.forgive() == 1
    assert folder.pending() == [bad]
    assert perform(folder, bad, "cpu") == "done"
    assert folder.failures() == []
    assert folder.forgive() == 0


@pytest.fixture
def broken():
    """A metric that always fails."""

    def fail(codes, factors):
        raise ValueError("the abacus is broken")

    register_metric("broken")(fail)
    yield "broken"
    METRICS.unregister("broken")


def test_a_metric_that_fails_leaves_the_others(opened, tiny, broken):
    tiny["evaluation"]["metrics"] = ["mig", broken, "sap"]
    del tiny["evaluation"]["params"]
    folder = opened(tiny)
    assert perform(folder, folder.jobs[0], "cpu") == "failed"
    assert "abacus" in folder.failures()[0]["error"]
    assert [name.partition("-")[0] for name in scores(folder, folder.jobs[0])] == ["mig"]

    tiny["evaluation"]["metrics"] = ["mig"]  # another study of the folder has all that it wants of this run
    tiny["name"] = "other"
    other = opened(tiny)
    assert not other.has_failed(other.jobs[0])
    assert perform(other, other.jobs[0], "cpu") == "done"
    folder.fail(folder.jobs[0], "ValueError: as before", "")
    assert other.failures() == []
    assert len(folder.failures()) == 1


def test_a_run_that_takes_its_process_down_without_getting_on_has_failed(opened):
    folder = opened()
    job = folder.jobs[0]
    for _ in range(ATTEMPTS):
        with pytest.raises(Killed):
            perform(folder, job, "cpu", stop_at("loading", error=Killed))
        count_crash_of(folder, os.getpid())
    assert perform(folder, job, "cpu") == "failed"
    assert folder.failures()[0]["error"] == f"the process that worked on it died {ATTEMPTS} times"
    assert folder.forgive() == 1
    assert perform(folder, job, "cpu") == "done"


def test_a_run_that_gets_on_is_given_more_attempts(opened):
    folder = opened()
    job = folder.jobs[0]
    for part in ("loading", "mig", "udr"):  # each is told before it is done
        for _ in range(ATTEMPTS - 1):
            with pytest.raises(Killed):
                perform(folder, job, "cpu", stop_at(part, error=Killed))
            count_crash_of(folder, os.getpid())
    assert perform(folder, job, "cpu") == "done"


def test_a_run_that_goes_down_with_everything_else_is_not_to_blame(opened):
    """The power fails, or the command is killed and its workers end with it: nobody has seen that it was the run."""
    folder = opened()
    job, other = folder.jobs[:2]
    for _ in range(ATTEMPTS + 2):
        with pytest.raises(Killed):
            perform(folder, job, "cpu", stop_at("training", error=Killed))
        count_crash_of(folder, 2**30)  # another process, which was on no run
    folder.attempts(other.identity).write_text('{"count": 5, "progress": [0, 0]}')  # an earlier version's
    assert perform(folder, job, "cpu") == "done"
    assert perform(folder, other, "cpu") == "done"


def test_interruptions_by_hand_do_not_count(opened):
    folder = opened()
    job = folder.jobs[0]
    for _ in range(ATTEMPTS + 2):
        with pytest.raises(KeyboardInterrupt):
            perform(folder, job, "cpu", stop_at("loading"))
    assert perform(folder, job, "cpu") == "done"


def test_a_run_that_another_process_holds_is_busy(opened):
    folder = opened()
    job = folder.jobs[0]
    with folder.lock(job.identity):
        assert perform(folder, job, "cpu") == "busy"
    assert not folder.run(job.identity).exists()
    assert perform(folder, job, "cpu") == "done"
    with folder.lock(job.identity):
        assert perform(folder, job, "cpu") == "done"  # nothing to do: nobody is asked


def test_the_lock_is_free_after_an_error(opened, monkeypatch):
    folder = opened()
    monkeypatch.setattr(performing, "train", lambda *_, **__: 1 / 0)
    assert perform(folder, folder.jobs[0], "cpu") == "failed"
    with folder.lock(folder.jobs[0].identity):
        pass


def test_what_is_told_of_a_run(opened):
    folder = opened()
    told = []
    perform(folder, folder.jobs[0], "cpu", lambda job, part, share: told.append((part, share)))
    parts = list(dict.fromkeys(part for part, _ in told))
    assert parts[:2] == ["loading", "training"]
    assert set(parts[2:]) == {unit.label for unit in folder.units}
    assert all(0 <= share <= 1 for _, share in told)


def test_a_worker_does_what_is_left_and_leaves_no_trace(opened):
    folder = opened()
    perform(folder, folder.jobs[3], "cpu")
    work(folder, "cpu")
    assert all(folder.is_done(job) for job in folder.jobs)
    assert list(folder.workers.iterdir()) == []


def test_the_same_study_gives_the_same_table_wherever_it_is(opened, finished):
    folder = opened()
    for job in reversed(folder.jobs):
        perform(folder, job, "cpu")
    one, two = collect(folder).table, collect(finished).table
    np.testing.assert_array_equal(one["value"], two["value"])
    assert one.drop(columns="seconds").equals(two.drop(columns="seconds"))


def test_a_study_is_opened_by_its_name(opened):
    folder = opened()
    again = open_study(folder.root, "tiny")
    assert again.jobs == folder.jobs
    assert again.units == folder.units
    assert again.done_file == folder.done_file


@pytest.mark.parametrize(
    ("trained", "asked", "scored"),
    [
        (None, "test", None),
        ("train", None, "train"),
        ("train", "test", "test"),
        ("train,0.8,3", "test", "test,0.8,3"),
    ],
)
def test_the_part_that_a_run_is_scored_on(monkeypatch, trained, asked, scored):
    loaded = []
    monkeypatch.setattr(performing, "load_data", lambda *arguments: loaded.append(arguments))
    job = Job("dsprites", "vae", {}, {"split": trained, "image_size": 32}, 0, "")
    performing.load_scored(job, asked)
    assert loaded == [("dsprites", 32, scored, None)]


def test_a_study_trains_on_one_part_and_scores_the_other(opened, tiny, images, monkeypatch):
    tiny["training"]["split"] = [0.75, 3]
    tiny["evaluation"] |= {"split": "test", "metrics": ["mig"], "params": {}}
    folder = opened(tiny)
    seen = {}
    train, measure = performing.train, performing.measure

    def remember_training(method, data, **settings):
        seen["train"] = {image.tobytes() for image in data.images(np.arange(len(data)))}
        return train(method, data, **settings)

    def remember_scoring(run, data, units, on_progress):
        seen["test"] = {image.tobytes() for image in data.images(np.arange(len(data)))}
        return measure(run, data, units, on_progress)

    monkeypatch.setattr(performing, "train", remember_training)
    monkeypatch.setattr(performing, "measure", remember_scoring)
    assert perform(folder, folder.jobs[0], "cpu") == "done"
    assert (len(seen["train"]), len(seen["test"])) == (18, 6)
    assert not seen["train"] & seen["test"]
    (row,) = [row for row in rows(folder, folder.jobs[0]) if row[0] == "mig"]
    assert 6 in row  # the number of rows that were scored


def test_a_study_of_a_folder_with_a_file_of_labels(opened, tiny, images, tmp_path):
    """Its factors are those of the file, of the rows that it has; the run remembers it as on the command line."""
    names = sorted(path.name for path in images.glob("*.png"))[:18]
    lines = [f"{name},{int(name[0]) % 2}" for name in names]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["file,parity", *lines]))
    tiny["training"]["labels_csv"] = str(file)
    tiny["evaluation"] = {"metrics": ["mig"]}
    folder = opened(tiny)
    job = folder.jobs[0]
    assert perform(folder, job, "cpu", lambda *_: None) == "done"
    spec = load(folder.run(job.identity)).spec
    assert spec.data["factors"] == {"parity": 2}
    assert spec.data["labelled"] == len(lines)
    assert spec.folder["labels"] == str(file)
    assert len(rows(folder, job)) == 1
    data = load_described(spec.data, spec.folder)
    assert len(data.labelled_rows()) == len(lines)
    assert spec.folder["content"] == job.content  # as `unweave train --labels-csv` has it
