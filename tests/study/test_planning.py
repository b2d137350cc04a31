import hashlib
import math
import shutil

import pytest
from PIL import Image

import unweave as uw
from unweave.errors import DataError
from unweave.methods import METHODS, Method, register_method
from unweave.study.grid import count_points
from unweave.study.perform import perform
from unweave.study.planning import SHARED, missing_methods, plan_jobs
from unweave.study.source import Source, parse
from unweave.study.spec import Study, check, known_studies, load_study

POINT = {"data": "dsprites", "method": "beta_vae", "beta": 4, "seed": 0}


def job(training=None, requires=(), **changes):
    point = {**POINT, **changes}
    study = Study(name="s", training=training or {}, runs=point, requires=list(requires))
    (found,) = plan_jobs(study)
    return found


def test_the_identity_is_a_promise():
    """Runs of years are found again by these names: a change here throws them away."""
    assert job().identity == "17deeb0317c2323ab8c2"
    assert job({"steps": 500, "learning_rate": 1e-3}, correlation=0.9).identity == "8cfc26f1cf7a3ea9ed04"


@pytest.mark.parametrize(
    "same",
    [
        {"beta": 4.0},
        {"steps": 300_000},
        {"steps": 300_000.0},
        {"steps": 3e5, "learning_rate": 1e-4, "correlation": 0},
        {"capacity": None, "extra_terms": [[]], "image_size": None},
    ],
)
def test_equal_runs_have_one_identity(same):
    assert job(**same).identity == job().identity
    assert job(**same).group == job().group


def test_defaults_may_be_given_or_not():
    point = {"data": "dsprites", "method": "beta_vae", "seed": 0}  # beta is 4 by default
    (found,) = plan_jobs(Study(name="other", title="t", training={"batch_size": 64}, runs=point))
    assert found.identity == job().identity


def test_whole_and_other_numbers_in_the_type_of_the_default():
    def annealed(**changes):
        point = {"data": "dsprites", "method": "annealed_vae", "seed": 0, **changes}
        return plan_jobs(Study(name="s", runs=point))[0]

    assert annealed(**{"method.steps": 1e5, "gamma": 1000}).identity == annealed().identity
    assert annealed(**{"method.steps": 7}).identity != annealed().identity
    assert annealed(**{"method.steps": 7}).hyperparameters["steps"] == 7
    assert annealed(**{"method.steps": 7}).training["steps"] == 300_000
    assert annealed(steps=7).training["steps"] == 7


@pytest.mark.parametrize(
    "training", [{}, {"latent_size": 7, "reconstruction": "gaussian", "labels": ["shape"]}]
)
def test_a_method_that_is_no_vae_has_only_the_settings_that_it_takes(training):
    @register_method
    class NoVAE(Method):
        def __init__(self, image_shape, *, width: int = 3):
            super().__init__()

    @register_method
    class Sized(Method):
        def __init__(self, image_shape, *, latent_size: int = 3):
            super().__init__()

    try:
        runs = {"data": "dsprites", "seed": 1}
        study = {"name": "s", "training": training}
        (plain,) = plan_jobs(Study(**study, runs={**runs, "method": "NoVAE", "width": 4}))
        (sized,) = plan_jobs(Study(**study, runs={**runs, "method": "Sized"}))
    finally:
        for name in ("NoVAE", "Sized"):
            METHODS.unregister(name)
    assert set(plain.training) == {
        "steps",
        "batch_size",
        "learning_rate",
        "precision",
        "image_size",
        "split",
        "labels_csv",
    }
    assert plain.hyperparameters == {"width": 4}
    assert sized.training["latent_size"] == sized.hyperparameters["latent_size"] == 3
    assert (plain.identity, sized.identity) == ("fb19a5e7205dd0c455af", "4b876473e912171b4093")


@pytest.mark.parametrize(
    "change",
    [
        {"beta": 4.5},
        {"seed": 1},
        {"data": "shapes3d"},
        {"method": "beta_tcvae"},
        {"method": "full_vae"},
        {"steps": 300_001},
        {"batch_size": 32},
        {"learning_rate": 2e-4},
        {"latent_size": 9},
        {"architecture": "mlp"},
        {"reconstruction": "gaussian"},
        {"correlation": 0.5},
        {"capacity": {"c_max": 5.0, "gamma": 1.0, "steps": 5.0}},
        {"extra_terms": [[{"name": "dip_ii", "lambda_od": 1}]]},
        {"precision": "bf16-mixed"},
        {"image_size": 32},
    ],
)
def test_any_real_change_has_another_identity(change):
    found = job(**change)
    assert found.identity != job().identity
    assert (found.group == job().group) == (list(change) == ["seed"])


def test_training_is_the_default_of_the_grid():
    assert job({"steps": 7}).training["steps"] == 7
    assert job({"steps": 7}, steps=8).training["steps"] == 8
    assert job({"steps": 7}).identity == job(steps=7).identity


def test_strength_is_the_first_hyperparameter():
    assert (job().strength_name, job().strength) == ("beta", 4.0)
    (plain,) = plan_jobs(Study(name="s", runs={"data": "dsprites", "method": "vae", "seed": 3}))
    assert plain.strength_name == ""
    assert math.isnan(plain.strength)
    assert str(plain) == "vae on dsprites, seed 3"
    assert str(job()) == "beta_vae beta 4 on dsprites, seed 0"
    (second,) = plan_jobs(
        Study(
            name="s",
            runs={"data": "dsprites", "method": "dip_vae_i", "lambda_d": 7, "lambda_od": 2, "seed": 0},
        )
    )
    assert (second.strength_name, second.strength) == ("lambda_od", 2.0)


def test_a_run_that_the_grid_has_twice_is_planned_once():
    study = Study(name="s", runs=[{**POINT, "beta": [1, 4]}, {**POINT, "beta": [4.0, 2]}])
    assert [found.strength for found in plan_jobs(study)] == [1, 4, 2]


@pytest.mark.parametrize(
    ("point", "told"),
    [
        ("{data: dsprites, method: beta_vae}", "seed = None: every run needs data, method and seed"),
        ("{method: beta_vae, seed: 0}", "data = None"),
        ("{data: dsprite, method: beta_vae, seed: 0}", "data set = 'dsprite': did you mean 'dsprites'"),
        ("{data: 5, method: beta_vae, seed: 0}", "data = 5: needs a data set's name or a folder"),
        ("{data: dsprites, method: bta_vae, seed: 0}", "method = 'bta_vae': did you mean 'beta_vae'"),
        ("{data: dsprites, method: [[beta_vae]], seed: 0}", "method = ['beta_vae']: needs a method's name"),
        ("{data: dsprites, method: {a: 1}, seed: 0}", "method = {'a': 1}: needs a method's name"),
        ("{data: dsprites, method: beta_vae, beta: -1, seed: 0}", "beta = -1: needs a number >= 0"),
        ("{data: dsprites, method: beta_vae, beta: high, seed: 0}", "beta = 'high': needs a number"),
        ("{data: dsprites, method: beta_vae, beta: 2024-01-01, seed: 0}", "beta = datetime.date(2024, 1, 1)"),
        ("{data: dsprites, method: beta_vae, betta: 1, seed: 0}", "betta': did you mean 'beta'"),
        ("{data: dsprites, method: beta_vae, stepps: 1, seed: 0}", "'stepps': did you mean 'steps'"),
        (
            "{data: dsprites, method: beta_vae, steps: 0, seed: 0}",
            "steps = 0: Input should be greater than 0",
        ),
        ("{data: dsprites, method: beta_vae, seed: -1}", "seed = -1: needs a whole number"),
        ("{data: dsprites, method: beta_vae, seed: 0.5}", "seed = 0.5: needs a whole number"),
        ("{data: dsprites, method: beta_vae, seed: true}", "seed = True: needs a whole number"),
    ],
)
def test_a_point_at_fault_is_told_with_its_line(point, told):
    source = parse(f"name: s\ntitle: t\nruns: {point}\n", "s.yaml")
    with pytest.raises(DataError) as caught:
        plan_jobs(check(source), source)
    assert str(caught.value).startswith("s.yaml, line 3: in the grid's point {")
    assert told in str(caught.value)


GRID = """\
name: s
training:
  steps: 10
  architecture: conv
runs:
  product:
    - data: [dsprites, rooms3d]
    - chain:
        - {method: beta_vae, beta: [1, 4]}
        - method: beta_tcvae
          beta:
            - 1
            - 4
        - zip:
            method: [vae, vae]
            latent_size: [5, 6]
    - seed: {range: 2}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ("rooms3d", "rooms4d", 7),
        ("beta: [1, 4]", "beta: [1, -4]", 9),
        ("            - 4", "            - -4", 13),
        ("method: beta_tcvae", "method: beta_tvae", 10),
        ("          beta:", "          betta:", 11),
        ("[vae, vae]", "[vae, vea]", 15),
        ("latent_size: [5, 6]", "latent_size: [5, 0]", 16),
        ("range: 2", "range: [-1, 1]", 17),
        ("architecture: conv", "architecture: conf", 4),
    ],
)
def test_a_setting_at_fault_is_told_with_its_own_line(right, wrong, line):
    assert right in GRID
    source = parse(GRID.replace(right, wrong), "s.yaml")
    with pytest.raises(DataError, match=f"^s.yaml, line {line}: "):
        plan_jobs(check(source), source)


def test_a_folder_is_known_by_what_is_in_it(images, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(images, tmp_path / "copy")
    (tmp_path / "s.yaml").write_text("runs: {data: copy, method: vae, seed: 0}")

    def identity(**overrides):
        (found,) = plan_jobs(*load_study(tmp_path / "s.yaml", overrides))
        return found.identity

    here = identity()
    assert identity(data=str(images)) == here == identity(data="./copy")
    first = sorted((tmp_path / "copy").glob("*.png"))[0]
    Image.new("L", (8, 8), 7).save(first)
    changed = identity()
    first.rename(first.with_name("z.png"))
    renamed = identity()
    table = tmp_path / "copy" / "factors.csv"
    table.write_text(table.read_text() + "\n")
    assert len({here, changed, renamed, identity()}) == 4
    (named,) = plan_jobs(Study(name="s", runs={"data": "dsprites", "method": "vae", "seed": 0}))
    assert identity(data="dsprites") == named.identity


def test_labels_are_known_by_what_is_in_them(images, tmp_path, monkeypatch):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    names = sorted(path.name for path in images.glob("*.png"))
    text = "file,kind\n" + "".join(f"{name},{number % 2}\n" for number, name in enumerate(names))
    (tmp_path / "labels.csv").write_text(text)
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "other.csv").write_text(text)
    (tmp_path / "s.yaml").write_text(f"runs: {{data: {images}, method: vae, seed: 0}}")
    (tmp_path / "axis.yaml").write_text(
        f"runs: {{data: {images}, labels_csv: labels.csv, method: vae, seed: 0}}"
    )

    def identity(file="s.yaml", **overrides):
        (found,) = plan_jobs(*load_study(tmp_path / file, overrides))
        return found.identity

    plain, labelled = identity(), identity(**{"training.labels_csv": "labels.csv"})
    assert plain != labelled
    assert identity("axis.yaml") == labelled == identity(**{"training.labels_csv": "moved/other.csv"})
    (tmp_path / "labels.csv").write_text(text.replace(",1", ",2"))
    assert identity("axis.yaml") not in (plain, labelled)


def test_labels_at_fault_are_told_with_their_line(images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(
        f"runs:\n  data: {images}\n  labels_csv: nowhere.csv\n  method: vae\n  seed: 0\n"
    )
    with pytest.raises(DataError, match=r"s.yaml, line 3: .*nowhere.csv': there is no such file"):
        plan_jobs(*load_study(tmp_path / "s.yaml"))
    (tmp_path / "nowhere.csv").write_text("file,kind\n")
    with pytest.raises(DataError, match="dsprites has its own factors: needs a folder of images"):
        plan_jobs(*load_study(tmp_path / "s.yaml", {"data": "dsprites"}))


def test_a_study_finds_its_folder_from_everywhere(images, tmp_path, monkeypatch):
    monkeypatch.chdir(images.parent)
    (tmp_path / "s.yaml").write_text(f"runs: {{data: [{images.name}, dsprites], method: vae, seed: 0}}")
    study, _ = load_study(tmp_path / "s.yaml")
    monkeypatch.chdir(tmp_path)
    assert [found.data for found in plan_jobs(study)] == [str(images), "dsprites"]
    assert str(images) in study.dump()


def test_a_grid_at_fault_is_told_with_its_line():
    source = parse("name: s\nruns:\n  product:\n    - data: dsprites\n    - seed: {range: x}\n", "s.yaml")
    with pytest.raises(DataError, match=r"s.yaml, line 5: runs.product.1.seed: range: 'x': needs one"):
        plan_jobs(check(source), source)


def test_methods_of_a_later_version_can_be_planned():
    point = {"data": "dsprites", "method": "from_the_future", "force": [1, 2], "seed": 0}
    jobs = plan_jobs(Study(name="s", runs=point, requires=["from_the_future"]))
    assert missing_methods(jobs) == ["from_the_future"]
    assert [found.strength for found in jobs] == [1, 2]


def test_a_run_that_two_studies_share_is_trained_once(opened, tiny):
    tiny["runs"]["product"][2] = {"seed": 0}
    first = opened(tiny)
    assert [perform(first, found, "cpu") for found in first.jobs] == ["done"] * 3
    weights = {found.identity: first.run(found.identity) / "weights.safetensors" for found in first.jobs}
    times = {name: path.stat().st_mtime_ns for name, path in weights.items()}

    tiny["name"], tiny["title"] = "second", "Another study in the same folder"
    tiny["runs"]["product"][1][0]["beta"] = [4.0, 16]
    tiny["evaluation"]["metrics"] = ["mig", "sap"]
    del tiny["evaluation"]["params"]
    second = opened(tiny)
    shared = [found for found in second.jobs if found.identity in times]
    assert len(shared) == 2
    assert not any(second.is_done(found) for found in shared)  # sap is new
    assert [perform(second, found, "cpu") for found in second.jobs] == ["done"] * 3
    for found in shared:
        assert weights[found.identity].stat().st_mtime_ns == times[found.identity]
        scores = sorted((first.run(found.identity) / "scores").glob("mig-*"))
        assert len(scores) == 1  # measured once as well
        assert first.is_done(found)
        assert second.is_done(found)


def test_a_source_without_lines_will_do():
    with pytest.raises(DataError, match=r"^study: in the grid's point"):
        plan_jobs(check(Source({"name": "s", "runs": {"seed": 0}})))


def test_the_studys_labels_are_for_methods_that_learn_from_them():
    study = {
        "name": "s",
        "training": {"labels": {"labelled": 0.5}},
        "runs": {"data": "dsprites", "method": ["beta_vae", "full_vae"], "seed": 0},
    }
    plain, labelled = plan_jobs(check(Source(study)))
    assert plain.training["labels"] is None
    assert labelled.training["labels"] == {"labelled": 0.5}
    study["training"] = {}
    assert plan_jobs(check(Source(study)))[0].identity == plain.identity
    study["training"] = {"labels": ["shape"], "prior": "conditional"}  # now every method does
    assert plan_jobs(check(Source({**study, "runs": {**study["runs"], "method": "vae"}})))[0].training[
        "labels"
    ] == ["shape"]


def test_a_size_that_a_data_set_cannot_have_is_refused_by_the_plan():
    with pytest.raises(DataError, match="image_size = 128: the images of dsprites have 64 x 64 pixels"):
        job({"image_size": 128})
    with pytest.raises(DataError, match="pendulum has no square images"):
        job(data="pendulum", image_size=32)


@pytest.mark.parametrize("name", known_studies())
def test_the_number_of_points_is_the_number_of_runs(name):
    study, source = load_study(name)
    runs = count_points(study.runs, SHARED, study.training.model_dump())
    assert runs == len(plan_jobs(study, source))


@pytest.mark.parametrize(
    ("name", "runs", "score"),
    [
        ("mita", "4dab10ce5025", "sap-mean-ac6c2cb4ff.json"),
        ("mita-small", "10acd209cf39", "sap-mean-4129c9b9e0.json"),
        ("locatello-small", "569d24115ef2", None),
    ],
)
def test_trainings_and_scores_of_earlier_versions_are_still_known(name, runs, score):
    """Directories of runs, and files of scores by the protocol dlib, have the names that they had in version 0.2."""
    plan = uw.study.plan(*uw.study.load_study(name))
    identities = "".join(job.identity for job in plan.jobs)
    assert hashlib.sha256(identities.encode()).hexdigest()[:12] == runs
    if score is not None:
        assert plan.units[2].file == score


def test_scores_by_the_papers_protocol_are_not_taken_for_those_of_version_0_2():
    unit = next(unit for unit in uw.study.plan(*uw.study.load_study("demo")).units if unit.label == "mig")
    assert unit.file != "mig-mean-ca922d4f42.json"
