"""Runs that need other runs: planned once, started when what they need is there, and as good after any kill."""

import json

import numpy as np
import pytest

import unweave as uw
from unweave.cli.study_status import as_json
from unweave.errors import DataError
from unweave.study import perform as performing
from unweave.study.collecting import collect
from unweave.study.driver import prepare
from unweave.study.folder import StudyPaths
from unweave.study.perform import perform
from unweave.study.planning import Plan, plan, plan_jobs
from unweave.study.source import Source, override, parse
from unweave.study.spec import Study, check
from unweave.study.status import status
from unweave.study.worker import work

TC = {"method": "beta_tcvae", "beta": 4}
RUN = {"data": "dsprites", "method": "ms_vae", "seed": 0}


def jobs_of(runs, training=None):
    return plan_jobs(Study(name="s", training=training or {}, runs=runs))


def by_method(jobs):
    methods = {}
    for job in jobs:
        methods.setdefault(job.method, []).append(job)
    return methods


# --- planning -----------------------------------------------------------------------------------------


def test_a_first_stage_is_a_run_of_its_own_and_comes_before():
    first, second = jobs_of({**RUN, "first": TC})
    (alone,) = jobs_of({**RUN, **TC})
    assert first == alone
    assert second.stages == {"first": first}
    assert second.hyperparameters["first"] == first.identity
    assert str(second) == "ms_vae latent_size 5 after beta_tcvae beta 4 on dsprites, seed 0"


def test_the_identity_of_a_second_stage_is_a_promise(staged):
    """Runs of days are found again by these names: a change here throws them away."""
    first, second = jobs_of({"data": "dsprites", "method": "refined", "seed": 0, "first": TC})
    assert (first.identity, second.identity) == ("34cf717095c9aa3ff84b", "b0ed0d3ff26558ca627e")


def test_a_first_stage_is_planned_once_for_all_that_share_it():
    runs = {**RUN, "latent_size": [5, 10], "first": {"method": "beta_tcvae", "beta": [1, 4]}, "seed": [0, 1]}
    jobs = by_method(jobs_of(runs))
    assert len(jobs["beta_tcvae"]) == 4  # two strengths, two seeds
    assert len(jobs["ms_vae"]) == 8
    for job in jobs["ms_vae"]:
        assert job.stages["first"] in jobs["beta_tcvae"]
        assert job.stages["first"].seed == job.seed
    together = jobs_of([{**RUN, **TC}, {**RUN, "first": TC}, {**RUN, "latent_size": 7, "first": TC}])
    assert [job.method for job in together] == ["beta_tcvae", "ms_vae", "ms_vae"]


@pytest.mark.parametrize(
    "runs",
    [
        {**RUN, "first.method": "beta_tcvae", "first.beta": [1, 4]},
        {**RUN, "first": {"method": "beta_tcvae"}, "first.beta": [1, 4]},
        {**RUN, "first": [{**TC, "beta": 1}, TC]},
        {**RUN, "first": {"chain": [{**TC, "beta": 1}, TC]}},
        {"product": [RUN, {"first.method": "beta_tcvae"}, {"first.beta": [1, 4.0]}]},
        {"product": [RUN, {"zip": {"first.method": ["beta_tcvae", "beta_tcvae"], "first.beta": [1, 4]}}]},
    ],
)
def test_all_ways_to_write_a_first_stage_are_one(runs):
    expected = jobs_of({**RUN, "first": {"method": "beta_tcvae", "beta": [1, 4]}})
    assert {job.identity for job in jobs_of(runs)} == {job.identity for job in expected}
    assert len(expected) == 4


def test_what_a_first_stage_takes_over_and_what_not():
    training = {"steps": 7, "latent_size": 8, "batch_size": 16}
    first, second = jobs_of({**RUN, "seed": 3, "steps": 9, "latent_size": 6, "first": TC}, training)
    assert (first.seed, first.training["steps"], first.training["batch_size"]) == (3, 9, 16)
    assert first.training["latent_size"] == 8  # |C| is the study's, |Z| the run's
    assert second.hyperparameters["latent_size"] == 6
    own = {**TC, "seed": 1, "steps": 5, "learning_rate": 1e-3, "batch_size": 32, "latent_size": 4}
    first, second = jobs_of({**RUN, "batch_size": 64, "first": {**own, "data": "cars3d"}}, training)
    assert (first.seed, first.data, first.training["steps"]) == (1, "cars3d", 5)
    assert (first.training["batch_size"], first.training["latent_size"]) == (32, 4)
    assert (second.seed, second.data, second.training["batch_size"]) == (0, "dsprites", 64)
    annealed = {"method": "annealed_vae", "method.steps": 50}
    first, _ = jobs_of({**RUN, "first": annealed})
    assert (first.hyperparameters["steps"], first.training["steps"]) == (50, 300_000)


def test_stages_of_stages():
    deep = {
        **RUN,
        "first": {"method": "ms_vae", "latent_size": 3, "first": {"method": "vae", "steps": [1, 2]}},
    }
    jobs = jobs_of({**deep, "seed": [0, 1]})
    assert [len(each) for each in by_method(jobs).values()] == [4, 8]
    last = jobs[-1]
    middle = last.stages["first"]
    assert (middle.method, middle.hyperparameters["latent_size"]) == ("ms_vae", 3)
    assert middle.stages["first"].training["steps"] == 2
    assert last.settings()["first.first.steps"] == 2
    twins = [job for job in jobs if job.group == last.group]
    assert [job.seed for job in twins] == [0, 1]
    assert jobs_of({**RUN, "first.method": "ms_vae", "first.first.method": "vae"})[0].method == "vae"


def test_a_plan_is_read_back_as_it_was_written():
    runs = {
        **RUN,
        "first": {"method": "ms_vae", "first": {"method": "beta_vae", "beta": [1, 4]}},
        "seed": [0, 1],
    }
    planned = plan(Study(name="s", runs=runs))
    text = planned.to_json()
    assert Plan.from_json(json.loads(text)).jobs == planned.jobs
    assert len(json.loads(text)["kinds"]) == 3  # beta 1, beta 4, and all that are on top of others


STUDY = """\
name: s
runs:
  product:
    - data: dsprites
    - method: ms_vae
      first:
        method: beta_tcvae
        beta: [1, 4]
        steps: 20
    - seed: 0
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line", "message"),
    [
        ("[1, 4]", "[1, -4]", 8, "first: beta = -4: needs a number >= 1"),
        ("beta_tcvae", "beta_tvae", 7, "first: method = 'beta_tvae': did you mean 'beta_tcvae'"),
        ("        beta:", "        betta:", 8, "first: hyperparameter of beta_tcvae = 'betta'"),
        ("steps: 20", "steps: 0", 9, "first: steps = 0: Input should be greater than 0"),
        ("dsprites", "dsprite", 4, "data set = 'dsprite'"),
        ("method: ms_vae", "method: vae", 6, "first = 'beta_tcvae': vae has no earlier stage of this name"),
        ("    - seed: 0", "    - {seed: 0, first.beta: 3}", 3, "'first.beta' is set by two of its parts"),
        (STUDY[STUDY.index("first:") : STUDY.index("    - seed")], "first: ./runs/1\n", 6, "needs a mapping"),
    ],
)
def test_a_first_stage_at_fault_is_reported_with_its_line(right, wrong, line, message):
    assert right in STUDY
    source = parse(STUDY.replace(right, wrong), "s.yaml")
    with pytest.raises(DataError, match=f"^s.yaml, line {line}: ") as caught:
        plan_jobs(check(source), source)
    assert message in str(caught.value)


def test_settings_of_a_first_stage_can_be_overridden():
    source = parse(STUDY, "s.yaml")
    changed = override(override(source, "first.beta", [2, 3, 5]), "first.steps", 50)
    firsts = by_method(plan_jobs(check(changed), changed))["beta_tcvae"]
    assert [(job.strength, job.training["steps"]) for job in firsts] == [(2, 50), (3, 50), (5, 50)]
    other = override(source, "data", "cars3d")
    assert {job.data for job in plan_jobs(check(other), other)} == {"cars3d"}


def test_folders_of_first_stages_are_found_from_everywhere(images, tmp_path, monkeypatch):
    monkeypatch.chdir(images.parent)
    first = f"{{method: vae, data: {images.name}}}"
    (tmp_path / "s.yaml").write_text(
        f"runs: {{data: {images.name}, method: ms_vae, first: {first}, seed: 0}}"
    )
    study, _ = uw.study.load_study(tmp_path / "s.yaml")
    monkeypatch.chdir(tmp_path)
    assert [job.data for job in plan_jobs(study)] == [str(images), str(images)]


# --- doing the runs -----------------------------------------------------------------------------------


def test_a_run_waits_until_what_it_needs_is_trained(opened, staged):
    folder = opened(staged)
    assert [job.method for job in folder.pending()] == ["beta_vae"] * 2 + ["refined"] * 4
    second = by_method(folder.jobs)["refined"][0]
    first = second.stages["first"]
    assert perform(folder, second, "cpu") == "waiting"
    assert not folder.run(second.identity).exists()

    def stop(job, part, share):
        if part == "mig":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(folder, first, "cpu", stop)
    assert not folder.is_done(first)
    assert perform(folder, second, "cpu") == "done"  # a trained first stage is enough
    assert perform(folder, first, "cpu") == "done"


def test_a_first_stage_of_another_study_is_not_trained_again(opened, staged, tiny):
    first = {"method": "beta_vae", "beta": [1, 4]}
    alone = {
        **staged,
        "name": "alone",
        "runs": {"product": [staged["runs"]["product"][0], first, {"seed": 0}]},
    }
    work(opened(alone), "cpu")
    folder = opened(staged)
    trained = {path: path.stat().st_mtime_ns for path in folder.runs.glob("*/weights.safetensors")}
    assert len(trained) == 2
    work(folder, "cpu")
    assert folder.pending() == folder.failures() == []
    assert {path: path.stat().st_mtime_ns for path in trained} == trained


def test_results_pair_a_second_stage_with_its_first(opened, staged):
    folder = opened(staged)
    work(folder, "cpu")
    for job in by_method(folder.jobs)["refined"]:
        assert_holds(folder.run(job.identity), folder.run(job.stages["first"].identity))
    table = collect(folder).table
    second = table[table["method"] == "refined"]
    assert set(second["part"]) == {"", "c", "z"}
    assert set(table[table["method"] == "beta_vae"]["part"]) == {""}  # its code has one part only
    pairs = second[second["part"] == "c"].merge(
        table, left_on="first", right_on="run", suffixes=("", "_of_first")
    )
    assert len(pairs) == 4
    assert (pairs["value"] == pairs["value_of_first"]).all()  # c is the code of the first stage
    assert (pairs["first_method"] == "beta_vae").all()
    assert (pairs["first_strength"] == pairs["strength_of_first"]).all()
    settings = [json.loads(text) for text in second.drop_duplicates("run")["settings"]]
    assert [each["first"]["beta"] for each in settings] == [1.0, 4.0, 1.0, 4.0]
    assert not any(each["first"].keys() & {"seed", "data", "steps"} for each in settings)  # as of the run
    assert set(uw.analyses.with_variant(table)["variant"]) == {"", "beta 1.0", "beta 4.0"}
    medians = uw.analyses.seed_medians(table)
    assert len(medians) == 2 + 4 * 3
    whole, c = uw.study.select(table, "mig"), uw.study.select(table, "mig", part="c")
    assert (len(whole), len(c)) == (6, 4)
    with pytest.raises(uw.study.NotInStudyError, match="not of the part 'y'"):
        uw.study.select(table, "mig", part="y")


def assert_holds(path, first_path):
    """The first stage in a run is that other run."""
    second, first = uw.load(path), uw.load(first_path)
    spec = second.spec.method.hyperparameters["first"]
    assert spec["method"] == first.spec.method.as_dict()
    assert (spec["seed"], spec["steps"]) == (first.spec.seed, first.spec.steps)
    images = np.random.default_rng(0).random((5, 8, 8, 1), np.float32)
    np.testing.assert_array_equal(second.encode(images, part="c"), first.encode(images))


def test_a_failed_first_stage_fails_what_needs_it_and_a_retry_does_both(opened, staged, monkeypatch):
    folder = opened(staged)
    train = performing.train

    def fail(method, *arguments, **settings):
        if method.spec.name == "beta_vae" and method.spec.hyperparameters["beta"] == 4:
            raise ValueError("the loss is purple")
        return train(method, *arguments, **settings)

    monkeypatch.setattr(performing, "train", fail)
    work(folder, "cpu")
    failed, *needing = folder.failures()
    assert failed["error"] == "ValueError: the loss is purple"
    reason = f"needs the run {failed['run']} (beta_vae beta 4 on "
    assert len(needing) == 2
    for record in needing:
        assert record["method"] == "refined"
        assert record["error"].startswith(reason)
        assert record["error"].endswith("which failed with ValueError: the loss is purple")
    assert len([job for job in folder.jobs if folder.is_done(job)]) == 3
    seen = status(StudyPaths(folder.root, folder.name))
    assert seen.counts == {"done": 3, "failed": 3}
    assert [record["run"] for record in seen.failures] == [record["run"] for record in folder.failures()]
    assert all(record["error"].startswith(reason[:40]) for record in seen.failures[1:])
    monkeypatch.setattr(performing, "train", train)
    assert folder.forgive() == 3
    work(folder, "cpu")
    assert folder.failures() == folder.pending() == []


def test_a_first_stage_that_only_could_not_be_measured_is_good_enough(opened, staged):
    folder = opened(staged)
    first = folder.jobs[0]

    def fail(job, part, share):
        if part == "mig":
            raise ValueError("purple")

    assert perform(folder, first, "cpu", fail) == "failed"
    work(folder, "cpu")
    assert [record["run"] for record in folder.failures()] == [first.identity]
    assert sum(folder.is_done(job) for job in folder.jobs) == 5


def test_what_needs_a_run_waits_while_its_damaged_weights_are_made_again(opened, staged):
    folder = opened(staged)
    second = next(job for job in folder.jobs if job.stages)
    first = second.stages["first"]
    assert perform(folder, first, "cpu") == "done"
    before = (folder.run(first.identity) / "weights.safetensors").read_bytes()
    (folder.run(first.identity) / folder.done_file).unlink()
    (folder.run(first.identity) / "weights.safetensors").write_bytes(before[: len(before) // 2])
    seen = []

    def begin_second(job, part, share):
        if part == "training":
            seen.append(perform(folder, second, "cpu"))

    assert perform(folder, first, "cpu", begin_second) == "done"
    assert set(seen) == {"waiting"}
    assert (folder.run(first.identity) / "weights.safetensors").read_bytes() == before
    assert perform(folder, second, "cpu") == "done"


def test_status_says_what_waits_for_another_run(opened, staged):
    folder = opened(staged)
    paths = StudyPaths(folder.root, folder.name)
    seen = as_json(status(paths))
    assert (seen["waiting"], seen["blocked"]) == (6, 4)
    perform(folder, folder.jobs[0], "cpu")
    assert as_json(status(paths))["blocked"] == 2


def test_a_study_is_checked_before_its_first_stages_are_trained(staged, tmp_path):
    source = Source(staged)
    folder = prepare(check(source), source, tmp_path / "out")
    assert len(folder.pending()) == 6
    assert not folder.runs.exists()
    staged["runs"]["product"][1] = {"method": "refined"}
    with pytest.raises(DataError, match=r"refined .*first = None: needs the run of a first stage"):
        prepare(check(source), source, tmp_path / "out")
